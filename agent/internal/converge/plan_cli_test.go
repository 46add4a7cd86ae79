package converge

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/realvpp"
)

// typeIn enters the lines of a plan into VPP's CLI like an operator. Where the plan cannot know it, the
// operator inserts the name of a new interface or the index of a new classify table. Operations without a
// CLI command use the API.
func (r *router) typeIn(ops []plan.Op) {
	r.t.Helper()
	given := make(map[string]string)
	byAPI := func(op plan.Op, t intent.Tunnel, add bool) {
		if index := r.greTunnel(add, t); add {
			given[op.Action.Target().Name] = r.snapshot().ByIndex(index).Name
		}
	}
	for _, op := range ops {
		line := op.Action.CLI()
		for planned, name := range given {
			line = strings.ReplaceAll(line, planned, name)
		}
		reply, err := r.session.Call(r.t.Context(), &vlib.CliInband{Cmd: line})
		if err != nil {
			r.t.Fatal(err)
		}
		m := reply.(*vlib.CliInbandReply)
		said := strings.TrimSpace(m.Reply)
		switch a := op.Action.(type) {
		case plan.CreateTunnel:
			if given[a.Interface.Name] = said; strings.HasPrefix(line, "comment ") {
				byAPI(op, a.Tunnel, true)
			}
			continue
		case plan.DeleteTunnel:
			if strings.HasPrefix(line, "comment ") {
				byAPI(op, a.Tunnel, false)
			}
			said = strings.TrimPrefix(said, "DELETED") // GRE prints this
			said, _, _ = strings.Cut(said, " (")
		case plan.AddTable:
			for index, t := range r.snapshot().Tables {
				if t.Mark == a.Mark {
					given[plan.Table{Index: observe.NoIndex, For: a.Access.Name}.String()] = fmt.Sprint(index)
				}
			}
		case plan.CreateSub:
			said = strings.TrimPrefix(said, a.Sub.Name)
		}
		if m.Retval != 0 || said != "" {
			r.t.Errorf("%q: %d, %q", line, m.Retval, m.Reply)
		}
	}
}

// TestCLILinesOfAPlanDoTheSameAsItsMessages creates each kind of line, changes it in place, and removes it.
func TestCLILinesOfAPlanDoTheSameAsItsMessages(t *testing.T) {
	real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan", "geneve", "gre", "policer"}})
	for _, w := range shared(t, real).wires() {
		for _, tagging := range []intent.Tagging{intent.Untagged, intent.Dot1q, intent.QinQ, intent.Dot1ad} {
			t.Run(fmt.Sprintf("%s/%s", w.name(), tagging), func(t *testing.T) {
				r := shared(t, real)
				before := comparable(r.snapshot())
				made := r.ends(w, tagging)
				var changed, again []intent.End
				var gone []intent.Tombstone
				for i := range made {
					made[i].Bandwidth = profile
					end := made[i]
					end.Revision, end.AdminUp, end.Frame = 2, false, 9518
					end.Bandwidth = intent.Bandwidth{CIR: 2 * profile.CIR, CBS: profile.CBS}
					changed, gone = append(changed, end), append(gone, tombstone(end))
					end.Revision, end.AdminUp, end.Bandwidth = 3, true, intent.Bandwidth{}
					again = append(again, end)
				}
				for n, in := range []*intent.Intent{{Present: made}, {Present: changed}, {Present: again}, {Removed: gone}} {
					p, _, err := r.Plan(t.Context(), in)
					if err != nil || len(p.Ops) == 0 || len(p.Blocked) != 0 {
						t.Fatalf("step %d: %v; %d operations, blocked %v", n, err, len(p.Ops), p.Blocked)
					}
					r.typeIn(p.Ops)
					if p, _, err = r.Plan(t.Context(), in); err != nil || len(p.Ops) != 0 || len(p.Blocked) != 0 {
						t.Fatalf("step %d: %v; left to do: %+v, blocked %v", n, err, p.Ops, p.Blocked)
					}
				}
				if after := comparable(r.snapshot()); !maps.Equal(after, before) {
					t.Errorf("left behind:\n got %+v\nwant %+v", after, before)
				}
			})
		}
	}
}

// shared returns a separate router for a VPP that several tests use in sequence.
func shared(t *testing.T, real *realvpp.VPP) *router {
	t.Helper()
	r := &router{t: t, folder: t.TempDir(), api: real.APISocket(), stats: real.StatsSocket()}
	r.open()
	r.connect()
	if r.snapshot().ByName("loop0") == nil {
		r.furnish()
	}
	r.ports = customerPorts
	return r
}

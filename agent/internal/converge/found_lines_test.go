package converge

import (
	"testing"

	"longline.dev/agent/internal/foundlines"
	"longline.dev/agent/internal/intent"
)

// circuits returns the foreign lines of a report.
func (r *router) circuits() []foundlines.Circuit {
	r.t.Helper()
	state, err := r.ObservedState(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return foundlines.Circuits(state.Snapshot, state.Plan)
}

func TestOnlyForeignLinesAreFound(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.put([]intent.End{vxlanEnd(1, r.ports[0]), vxlanEnd(2, r.ports[1])}).mustAllBe(t, "verified")
		if found := r.circuits(); len(found) != 0 {
			t.Fatalf("found %+v in addition to two lines of the agent", found)
		}
		r.lineByHand(r.ports[3], 900, 901)
		r.tunnelByHand(intent.Tunnel{Local: locals[4], Remote: remotes[4], VNI: 902})
		r.setDown(r.ports[3] + ".900")
		r.Converge(t.Context())
		found := r.circuits()
		if len(found) != 2 {
			t.Fatalf("found %+v", found)
		}
		line, lone := found[0], found[1]
		if line.Near.Tunnel != nil {
			line, lone = lone, line
		}
		if line.Near.Name != r.ports[3]+".900" || line.Near.Port.Name != r.ports[3] || line.Near.Sub.Outer != 901 || line.Near.Tag != "somebody's" ||
			line.Near.AdminUp || line.Far.Tunnel.VNI != 901 || !line.Out || !line.In {
			t.Errorf("found %+v to %+v, out %v, in %v", line.Near, line.Far.Tunnel, line.Out, line.In)
		}
		if lone.Near.Tunnel.VNI != 902 || lone.Far.Interface != nil {
			t.Errorf("found %+v", lone)
		}
	})
}

func TestRelabelledLineIsNotFound(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.relabel("somebody's", end.Key)
		r.Converge(t.Context())
		if found := r.circuits(); len(found) != 0 {
			t.Errorf("found %+v", found)
		}
	})
}

package converge

import (
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/intent"
)

// TestOutcomeContainsForeignChangesDuringAConverge uses so many lines that the agent reads back all of VPP.
func TestOutcomeContainsForeignChangesDuringAConverge(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(r *router, whole, vlan intent.End)
		status  string // of the line on the port
		code    string
	}{
		"a whole port goes": {func(r *router, whole, _ intent.End) {
			r.must(&interfaces.DeleteLoopback{SwIfIndex: r.index(whole.Access.Interface)})
		}, "pending", "unknown_interface"},
		"a sub-interface is deleted and created again": {func(r *router, _, vlan intent.End) {
			r.must(&interfaces.DeleteSubif{SwIfIndex: r.index(r.accessName(vlan))})
		}, "verified", ""},
		"another client sends into a line": {func(r *router, whole, _ intent.End) {
			r.sendInto(whole.Access.Interface)
		}, "conflict", "foreign_xconnect"},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryVPP(t, func(t *testing.T, r *router) {
				whole, vlan := vxlanEnd(1, r.ports[1]), vxlanEnd(2, r.ports[2])
				whole.Access = accessOf(intent.Untagged, r.ports[1])
				r.put([]intent.End{whole, vlan}).mustAllBe(t, "verified")
				many := []intent.End{whole, vlan}
				for n := range fewTouched/2 + 1 {
					many = append(many, vxlanEnd(10+n, r.ports[0]))
				}
				session := &sessionWithMeddler{Session: r.session, left: 1, meddle: func() { c.happens(r, whole, vlan) }}
				r.use(session)
				outcome := r.put(many)
				r.use(r.session)
				if !session.meddled {
					t.Fatal("nothing happened")
				}
				for _, end := range outcome.Ends {
					switch about := end.Key == whole.Key; {
					case about && c.code != "":
						if end.Status != c.status || end.Reason.Code != c.code {
							t.Errorf("the answer is %s, %+v", end.Status, end.Reason)
						}
					case end.Reason != nil:
						t.Errorf("%s is %s, %+v", end.Key, end.Status, end.Reason)
					}
				}
				if sub := r.snapshot().ByName(r.accessName(vlan)); sub == nil {
					t.Errorf("verified, and there is no %s", r.accessName(vlan))
				}
			})
		})
	}
}

package converge

import (
	"testing"

	"longline.dev/agent/internal/durable/durabletest"
	"longline.dev/agent/internal/intent"
)

func TestRestartOfVPPIsRepairedWithAFullDisk(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.folder = durabletest.SmallDisk(t, "1m")
		r.open()
		var ends []intent.End
		for n := range 60 {
			ends = append(ends, vxlanEnd(n, r.ports[n%len(r.ports)]))
		}
		r.put(ends).mustAllBe(t, "verified")
		durabletest.Fill(t, r.folder)
		for run := range 5 {
			r.restartVPP()
			r.open() // the agent restarts too
			r.convergeNewConnection(t.Context())
			if off := r.fieldsOff(); len(off) != 0 || r.Ready() != nil {
				t.Fatalf("run %d: %d are missing, %v", run, len(off), r.Ready())
			}
		}
		for n := range ends {
			ends[n].Revision, ends[n].Access.Outer = 2, ends[n].Access.Outer+1000
		}
		r.put(ends).mustAllBe(t, "verified")
	})
}

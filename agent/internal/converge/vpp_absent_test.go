package converge

import (
	"fmt"
	"syscall"
	"testing"
)

func TestOnlyAVPPThatWasConnectedBeforeIsReportedAsAbsent(t *testing.T) {
	refusedConnection := fmt.Errorf("connect: %w", syscall.ECONNREFUSED)
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.Attach(nil)
		if r.Refused(syscall.ETIMEDOUT); r.Status().Absent {
			t.Error("one that does not answer may forward")
		}
		if r.Refused(refusedConnection); !r.Status().Absent {
			t.Error("no VPP listens any more")
		}
		if r.Refused(nil); r.Status().Absent {
			t.Error("it is there again")
		}
		stranger := New(r.store, nil, r.log, r.now, Options{})
		if stranger.Refused(refusedConnection); stranger.Status().Absent {
			t.Error("the path of its socket may be wrong")
		}
	})
}

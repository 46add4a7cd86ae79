package converge

import (
	"fmt"
	"syscall"
	"testing"
)

func TestOnlyAVPPThatWasConnectedBeforeIsReportedAsAbsent(t *testing.T) {
	nobodyListens := fmt.Errorf("connect: %w", syscall.ECONNREFUSED)
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.Attach(nil)
		if r.Refused(syscall.ETIMEDOUT); r.Status().Absent {
			t.Error("one that does not answer may forward")
		}
		if r.Refused(nobodyListens); !r.Status().Absent {
			t.Error("nobody listens any more")
		}
		if r.Refused(nil); r.Status().Absent {
			t.Error("it is there again")
		}
		stranger := New(r.store, nil, r.log, r.now)
		if stranger.Refused(nobodyListens); stranger.Status().Absent {
			t.Error("the path of its socket may be wrong")
		}
	})
}

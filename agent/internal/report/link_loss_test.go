package report

import (
	"testing"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
)

// TestAPortThatIsShutDownReportsNoLinkLoss: its link state is not compared with that before or after,
// so no event reports a loss.
func TestAPortThatIsShutDownReportsNoLinkLoss(t *testing.T) {
	key := intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"}
	var claims []ownership.Claim
	reported := func(wanted, adminUp, linkUp bool) (endBody, routerView) {
		end := intent.End{Key: key, Revision: 1, AdminUp: true, UNILinkDown: wanted}
		end.Access = intent.Access{Interface: "cust1", Tagging: intent.Untagged, Exact: true}
		end.Tunnel = intent.Tunnel{Encapsulation: intent.L2XC}
		state := &converge.ObservedState{
			Intent: &intent.Intent{Present: []intent.End{end}}, Plan: &plan.Plan{StandingClaims: claims},
			Snapshot: (&observe.Snapshot{Interfaces: []*observe.Interface{{Index: 1, Sup: 1, Name: "cust1", AdminUp: adminUp, LinkUp: linkUp}}}).Index(),
		}
		var body observedBody
		body.fill(state, false, nil, nil, nil, Loads{}, nil)
		return body.Ends[0], routerViewOf(converge.Status{}, state)
	}
	_, before := reported(false, true, true)
	kept, during := reported(true, false, false)
	back, negotiating := reported(false, true, false)
	if !kept.ShutDown || kept.LinkUp || back.ShutDown {
		t.Errorf("shut down it is %+v, and after that %+v", kept, back)
	}
	// Until the agent has taken the port down, the port's own link state is reported.
	if notYet, _ := reported(true, true, true); notYet.ShutDown || !notYet.LinkUp {
		t.Errorf("not taken down yet it is %+v", notYet)
	}
	if events := append(eventsBetween(before, during), eventsBetween(during, negotiating)...); len(events) != 0 {
		t.Errorf("reported: %v", inShort(events))
	}
	if _, lost := reported(false, true, false); len(eventsBetween(before, lost)) != 1 {
		t.Error("the port's own link loss is not reported")
	}
	// The intent no longer requires the port to be down, but a conflict has prevented it from coming up.
	claims = []ownership.Claim{{VLL: key.VLL, End: key.End, Port: "cust1", LinkLoss: true}}
	still, after := reported(false, false, false)
	if events := eventsBetween(during, after); !still.ShutDown || len(events) != 0 {
		t.Errorf("not set up yet it is %+v, reported as %v", still, inShort(events))
	}
}

package main

import (
	"fmt"
	"slices"
	"testing"
)

// reported waits until the portal has received events of these kinds in this order. It ignores other events
// in between.
func (a *agent) reported(kinds ...string) {
	a.t.Helper()
	var all []string
	await(a.t, a.portal.events, fmt.Sprint(kinds), func(report map[string]any) bool {
		for _, e := range report["events"].([]any) {
			all = append(all, e.(map[string]any)["kind"].(string))
		}
		next := 0
		for _, kind := range all {
			if next < len(kinds) && kind == kinds[next] {
				next++
			}
		}
		return next == len(kinds)
	})
}

func TestEventsOfTheRouterAreReportedInOrder(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.reported("vpp.connected")
	a.put("vxlan4-dot1q.json")
	a.reported("intent.applied")
	if err := a.sim.SetCarrier("cust0", false); err != nil {
		t.Fatal(err)
	}
	a.reported("interface.down")
	if err := a.sim.SetCarrier("cust0", true); err != nil {
		t.Fatal(err)
	}
	a.reported("interface.up")
	if err := a.sim.Restart(); err != nil {
		t.Fatal(err)
	}
	a.reported("vpp.lost", "vpp.connected", "intent.applied")
}

func TestSamplesOfAStoppedAgentKeepItsBootID(t *testing.T) {
	a := newAgent(t)
	a.portal.away.Store(true)
	stop := a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	a.awaitQueue()
	stop()
	a.portal.away.Store(false)
	a.start()
	first := await(t, a.portal.counters, "the stored samples", func(map[string]any) bool { return true })
	var boots []any
	await(t, a.portal.counters, "samples of the second run", func(r map[string]any) bool {
		boots = append(boots, r["boot_id"])
		return r["boot_id"] != first["boot_id"]
	})
	if first["samples"].([]any)[0].(map[string]any)["seq"] != 1.0 || slices.Contains(boots[:len(boots)-1], boots[len(boots)-1]) {
		t.Errorf("began with %v, then %v", first, boots)
	}
}

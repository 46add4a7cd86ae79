package main

import (
	"testing"
	"time"
)

// countedEnd is the entry of the only end in one sample.
type countedEnd struct{ fromMS, toMS, inBytes float64 }

// countedUntil collects samples until one ends after the given time.
func (a *agent) countedUntil(ms int64) (all []countedEnd) {
	a.t.Helper()
	for deadline := time.After(testTimeout); ; {
		select {
		case report := <-a.portal.counters:
			for _, each := range report["samples"].([]any) {
				sample := each.(map[string]any)
				if ends := sample["ends"].([]any); len(ends) > 0 { // ports are counted before any end exists
					counted := ends[0].(map[string]any)["in_bytes"].(float64)
					all = append(all, countedEnd{sample["from_ms"].(float64), sample["to_ms"].(float64), counted})
				}
			}
			if len(all) > 0 && all[len(all)-1].toMS > float64(ms) {
				return all
			}
		case <-deadline:
			a.t.Fatalf("no sample reaches that far; there are %v", all)
		}
	}
}

func TestCountersHaveNoGapWhileVPPsMainThreadIsBusy(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	counted := a.countedUntil(time.Now().UnixMilli() + 4000) // until the agent has read VPP after it created the line
	done, err := a.sim.Busy()
	if err != nil {
		t.Fatal(err)
	}
	await(t, a.portal.observed, "VPP does not answer", func(r map[string]any) bool {
		vpp := r["vpp"].(map[string]any)
		return vpp["connected"] == false && vpp["absent"] == false
	})
	counted = append(counted, a.countedUntil(time.Now().UnixMilli()+3000)...)
	done()
	await(t, a.portal.observed, "VPP answers again", func(r map[string]any) bool { return r["vpp"].(map[string]any)["connected"] == true })
	counted = append(counted, a.countedUntil(time.Now().UnixMilli()+3000)...)
	for i, c := range counted {
		if rate := c.inBytes * 8000 / (c.toMS - c.fromMS); rate < 4_000_000 || rate > 16_000_000 { // the stand-in sends about 8 Mbit/s
			t.Errorf("sample %d: %.0f bit/s", i, rate)
		}
		if i > 0 && c.fromMS != counted[i-1].toMS {
			t.Errorf("a gap of %.0f ms before sample %d", c.fromMS-counted[i-1].toMS, i)
		}
	}
}

func TestCountersHaveAGapIfVPPDiesWhileItDoesNotRespond(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.awaitReady()
	a.put("vxlan4-dot1q.json")
	a.countedUntil(time.Now().UnixMilli() + 1500)
	done, err := a.sim.Busy()
	if err != nil {
		t.Fatal(err)
	}
	await(t, a.portal.observed, "VPP does not answer", func(r map[string]any) bool { return r["vpp"].(map[string]any)["connected"] == false })
	died := float64(time.Now().UnixMilli())
	a.sim.Stop()
	done()
	await(t, a.portal.observed, "VPP is dead", func(r map[string]any) bool { return r["vpp"].(map[string]any)["absent"] == true })
	for quiet := time.After(3 * time.Second); ; {
		select {
		case report := <-a.portal.counters:
			for _, each := range report["samples"].([]any) {
				if sample := each.(map[string]any); sample["from_ms"].(float64) > died {
					t.Errorf("counted after its death: %v", sample)
				}
			}
		case <-quiet:
			return
		}
	}
}

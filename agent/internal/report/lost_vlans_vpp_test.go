package report

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// TestOnARealVPPOnlyALostLineIsRebuiltAndNotAQuietOne: alice's line is quiet while the policer of her
// neighbour on the same port drops frames, and frames of unknown VLANs arrive at both ports. Then a refused
// duplicate stops her line.
func TestOnARealVPPOnlyALostLineIsRebuiltAndNotAQuietOne(t *testing.T) {
	v := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}})
	cli := func(format string, args ...any) {
		t.Helper()
		if output, err := v.CLI(fmt.Sprintf(format, args...)); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	cli("create loopback interface instance 0")
	cli("set interface state loop0 up")
	cli("set interface ip address loop0 10.255.0.1/32")
	for port := range 2 {
		cli("create packet-generator interface pg%d", port)
		cli("set interface state pg%d up", port)
	}
	cli("ip route add 10.255.0.2/32 via loop0")
	stream := func(name string, port, vlan, rate int) {
		t.Helper()
		cli("packet-generator new { name %s limit 0 rate %d size 100-100 interface pg%d node ethernet-input "+
			"data { IP4: 02:00:00:00:00:0a -> 02:00:00:00:00:0b vlan %d UDP: 192.0.2.1 -> 192.0.2.2 UDP: 1 -> 2 incrementing 54 } }", name, rate, port, vlan)
		cli("packet-generator enable-stream %s", name)
	}
	folder, at := t.TempDir(), start
	clock := func() time.Time { return at }
	journal, err := ownership.OpenJournal(folder)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := statseg.BootTime(t.Context(), v.StatsSocket())
	if err != nil {
		t.Fatal(err)
	}
	session, err := vpp.Dialer{Socket: v.APISocket(), Timeout: realvpp.ReplyTimeout, BootMS: func(context.Context) (int64, error) { return boot, nil }}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	engine := newEngine(intent.OpenStore(folder, "rhino"), journal, clock)
	engine.Attach(session)
	line := func(n int, outer uint16) intent.End {
		return intent.End{
			Key: intent.Key{VLL: fmt.Sprintf("6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a%02d", n), End: "a"}, Revision: 1, AdminUp: true, Frame: 1514,
			Access: intent.Access{Interface: "pg0", Tagging: intent.Dot1q, Outer: outer, Exact: true},
			Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, Local: netip.MustParseAddr("10.255.0.1"), Remote: netip.MustParseAddr("10.255.0.2"), VNI: uint32(1000 + n)},
		}
	}
	hers, neighbours := line(1, 100), line(2, 200)
	neighbours.Bandwidth = intent.Bandwidth{CIR: 64_000, CBS: 2_000}
	wanted := &intent.Intent{Router: "rhino", Generation: 1, Present: []intent.End{hers, neighbours}}
	if outcome, err := engine.Put(t.Context(), wanted, ""); err != nil || !outcome.Applied || slices.ContainsFunc(outcome.Ends, func(e converge.End) bool { return e.Status != "verified" }) {
		t.Fatalf("%+v, %v", outcome, err)
	}
	r := New(Options{
		Engine: engine, Client: &answering{}, Folder: folder, StoreLimit: 1 << 20, StatsSocket: v.StatsSocket(), Interval: 10 * time.Second,
		Router: "rhino", Log: quiet, Now: clock,
	})
	t.Cleanup(func() { r.close(); r.segment.Close() })
	pass := func(readings int) {
		t.Helper()
		for range readings {
			at = at.Add(10 * time.Second)
			time.Sleep(1200 * time.Millisecond) // time for VPP to publish its counters
			r.prepare(t.Context(), onTick)
			r.searching.Wait()
			engine.CheckDrift(t.Context())
		}
	}
	events := func() (kinds []string) {
		t.Helper()
		records, err := r.events.spool.Oldest(100)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			var stored storedEvent
			if err := json.Unmarshal(record.Data, &stored); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(stored.Event.Kind, "end.") {
				kinds = append(kinds, stored.Event.Kind+" "+*stored.Event.VLL)
			}
		}
		return kinds
	}
	stream("hers", 0, 100, 50)
	stream("neighbours", 0, 200, 2000)
	stream("strays", 0, 600, 50)
	stream("elsewhere", 1, 500, 50)
	pass(3)
	cli("packet-generator delete hers")
	pass(8)
	if kinds := events(); len(kinds) != 0 {
		t.Errorf("while she is quiet: %q", kinds)
	}
	if losses := r.vlanLosses(); len(losses) != 0 {
		t.Errorf("while she is quiet it reports %+v", losses)
	}
	if drops := r.sampler.Totals(); len(drops) != 2 || drops[1].Dropped.In == nil || *drops[1].Dropped.In == 0 {
		t.Errorf("this test shows nothing: the neighbour is not policed: %+v", drops)
	}
	stream("hers", 0, 100, 50)
	pass(2)
	if output, err := v.CLI("create sub-interfaces pg0 999 dot1q 100 exact-match"); err == nil && !strings.Contains(output, "in use") {
		t.Fatalf("the duplicate: %s", output)
	}
	pass(10)
	if kinds := events(); !slices.Equal(kinds, []string{"end.vlan_rebuilt " + hers.VLL, "end.vlan_restored " + hers.VLL}) {
		t.Errorf("events %q", kinds)
	}
	if losses := r.vlanLosses(); len(losses) != 0 {
		t.Errorf("it reports %+v", losses)
	}
}

package vppcontract

import (
	"testing"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
)

func (d *device) stat(client *statsclient.StatsClient, name string) adapter.Stat {
	d.Helper()
	for tries := 0; ; tries++ {
		entries, err := client.DumpStats("^" + name + "$")
		if err == adapter.ErrStatsDataBusy && tries < 100 {
			continue
		}
		if err != nil || len(entries) != 1 || entries[0].Data == nil {
			d.Fatalf("%s: %v, %v", name, entries, err)
		}
		return entries[0].Data
	}
}

func (d *device) names(client *statsclient.StatsClient) []string {
	d.Helper()
	var names []string
	for _, name := range d.stat(client, "/if/names").(adapter.NameStat) {
		names = append(names, string(name))
	}
	return names
}

func TestStatsNameEachIndex(t *testing.T) {
	both(t, func(d *device) {
		client := d.connectStats()
		sub := d.subif(d.port(), 100)
		tunnel := d.vxlan("10.0.0.1", "10.0.0.2", 5)
		names := d.names(client)
		if int(tunnel) >= len(names) || names[0] != "local0" || names[sub] != "loop0.100" || names[tunnel] != "vxlan_tunnel0" {
			d.Errorf("names %q", names)
		}
		for _, counter := range []string{"/if/rx", "/if/tx"} {
			threads := d.stat(client, counter).(adapter.CombinedCounterStat)
			if len(threads) != 1 || len(threads[0]) <= int(tunnel) {
				d.Errorf("%s has %d threads, the first counts %d interfaces", counter, len(threads), len(threads[0]))
			}
		}
	})
}

func TestADeletedInterfaceIsNamedDeletedInStats(t *testing.T) {
	both(t, func(d *device) {
		client := d.connectStats()
		port := d.port()
		sub := d.subif(port, 100)
		d.deleteSubif(sub)
		if names := d.names(client); names[sub] != "deleted" {
			d.Errorf("names %q", names)
		}
		if again := d.subif(port, 101); d.names(client)[again] != "loop0.101" {
			d.Errorf("names %q", d.names(client))
		}
	})
}

func TestTheHeartbeatGrowsAndTheBootTimeIsConstant(t *testing.T) {
	both(t, func(d *device) {
		client := d.connectStats()
		first, boot := d.stat(client, "/sys/heartbeat"), d.stat(client, "/sys/boottime")
		deadline := time.Now().Add(30 * time.Second)
		for d.stat(client, "/sys/heartbeat").(adapter.ScalarStat) <= first.(adapter.ScalarStat) {
			if time.Now().After(deadline) {
				d.Fatal("the heartbeat does not change")
			}
			time.Sleep(50 * time.Millisecond)
		}
		if again := d.stat(client, "/sys/boottime"); again != boot {
			d.Errorf("boot time %v, then %v", boot, again)
		}
		seconds := float64(boot.(adapter.ScalarStat))
		if age := float64(time.Now().Unix()) - seconds; age < 0 || age > 3600 {
			d.Errorf("boot time %v is no recent Unix time in seconds", seconds)
		}
	})
}

func TestARestartedVPPHasANewSegment(t *testing.T) {
	both(t, func(d *device) {
		d.port()
		if names := d.names(d.connectStats()); len(names) < 2 || names[1] != "loop0" {
			d.Errorf("names %q", names)
		}
		if err := d.restart(); err != nil {
			d.Fatal(err)
		}
		if names := d.names(d.connectStats()); len(names) > 1 && names[1] == "loop0" {
			d.Errorf("the new segment still has %q", names)
		}
	})
}

// While the epoch is unchanged, no interface of the kinds that lines use has appeared or disappeared. The
// agent then need not read again before it creates a sub-interface, or before each change of an object that
// it has read.
func TestTheEpochChangesExactlyWhenInterfacesChange(t *testing.T) {
	both(t, func(d *device) {
		client := d.connectStats()
		port, other := d.portUp(), d.subif(d.portUp(), 7)
		boot := int64(float64(d.stat(client, "/sys/boottime").(adapter.ScalarStat)) * 1000)
		watched := statseg.NewReopeningSegment(d.stats)
		defer watched.Close()
		last := int64(0)
		moved := func() bool {
			d.Helper()
			epoch, err := watched.Epoch(boot)
			if err != nil {
				d.Fatal(err)
			}
			before := last
			last = epoch
			return epoch != before
		}
		moved()
		for change, do := range map[string]func(){
			"dumps":        func() { d.interfaces(); d.xconnects() },
			"a flag":       func() { d.setFlags(other, up) },
			"a connection": func() { d.xconnect(other, port) },
			"a rewrite":    func() { do(d, rewrite(other, pop1), &l2.L2InterfaceVlanTagRewriteReply{}) },
			"a tag": func() {
				do(d, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: other, Tag: "mine"}, &interfaces.SwInterfaceTagAddDelReply{})
			},
			"a second idle": func() { time.Sleep(time.Second) },
		} {
			if do(); moved() {
				d.Errorf("%s moved the epoch: the agent would always look again", change)
			}
		}
		var made index
		for change, c := range map[string]struct{ make, delete func() }{
			"sub-interface": {func() { made = d.subif(port, 100) }, func() { d.deleteSubif(made) }},
			"port":          {func() { made = d.port() }, func() { do(d, &interfaces.DeleteLoopback{SwIfIndex: made}, &interfaces.DeleteLoopbackReply{}) }},
			"VXLAN tunnel": {func() { d.vxlan("10.0.0.1", "10.0.0.2", 5) }, func() {
				do(d, vxlanDelete("10.0.0.1", "10.0.0.2", 5), &vxlan.VxlanAddDelTunnelV3Reply{})
			}},
			"GENEVE tunnel": {func() { d.geneve("10.0.0.1", "10.0.0.2", 5) }, func() {
				do(d, geneveDelete("10.0.0.1", "10.0.0.2", 5), &geneve.GeneveAddDelTunnel2Reply{})
			}},
			"GRE tunnel": {func() { d.gre("10.0.0.1", "10.0.0.2") }, func() {
				do(d, greDelete("10.0.0.1", "10.0.0.2"), &gre.GreTunnelAddDelReply{})
			}},
		} {
			for range 3 { // the same name and index again each time
				c.make()
				if !moved() {
					d.Errorf("a %s was created and the epoch did not change", change)
				}
				c.delete()
				if !moved() {
					d.Errorf("a %s was deleted and the epoch did not change", change)
				}
			}
		}
		if _, err := watched.Epoch(boot - 1); err == nil {
			d.Error("the epoch of another run of VPP was read")
		}
	})
}

// A VPP whose segment is full aborts, so the agent has to know in advance.
func TestStatsShowHowFullTheSegmentIs(t *testing.T) {
	both(t, func(d *device) {
		memory := func() statseg.Memory {
			segment, err := statseg.Open(d.stats, time.Second)
			if err != nil {
				d.Fatal(err)
			}
			defer segment.Close()
			m, err := segment.Memory()
			if err != nil {
				d.Fatal(err)
			}
			return m
		}
		before := memory()
		if before.Threads != 1 || before.Used == 0 || before.Used >= before.Total {
			d.Fatalf("%+v", before)
		}
		const more = 500
		for vni := range uint32(more) {
			d.vxlan("10.0.0.1", "10.0.0.2", vni+1)
		}
		var each uint64
		for range 50 { // VPP checks its heaps once a second here
			if each = (memory().Used - before.Used) / more; each > 0 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if each < 500 || each > 10_000 {
			d.Errorf("an interface takes %d bytes", each)
		}
	})
}

// Losses are identified only by name: a counter with another name in VPP would be missing without any
// error.
func TestLossesAreCountedUnderTheirNames(t *testing.T) {
	both(t, func(d *device) {
		client := d.connectStats()
		sub := d.subif(d.port(), 100)
		for _, name := range []string{"/if/drops", "/if/rx-miss", "/if/rx-error", "/if/rx-no-buf", "/if/tx-error"} {
			threads, ok := d.stat(client, name).(adapter.SimpleCounterStat)
			if !ok || len(threads) != 1 || len(threads[0]) <= int(sub) || threads[0][sub] != 0 {
				d.Errorf("%s is %+v", name, d.stat(client, name))
			}
		}
		for _, name := range []string{
			"ethernet-input/unknown vlan", "vxlan4-input/no such tunnel packets", "vxlan6-input/no such tunnel packets",
			"geneve4-input/no such tunnel packets", "geneve6-input/no such tunnel packets",
			"gre4-input/GRE input packets dropped due to missing tunnel", "gre6-input/GRE input packets dropped due to missing tunnel",
			"ip4-local-full-reassembly/reass_limit_reached", "ip6-local-full-reassembly/reass_limit_reached",
			"ip4-local-full-reassembly/reass_fragment_chain_too_long", "ip6-local-full-reassembly/reass_fragment_chain_too_long",
			"ip4-local-full-reassembly/reass_no_buf", "ip6-local-full-reassembly/reass_no_buf",
			"ip4-local-full-reassembly/reass_timeout", "ip6-local-full-reassembly/reass_timeout",
		} {
			threads, ok := d.stat(client, "/err/"+name).(adapter.SimpleCounterStat)
			if !ok || len(threads) != 1 || len(threads[0]) != 1 || threads[0][0] != 0 {
				d.Errorf("%s is %+v", name, d.stat(client, "/err/"+name))
			}
		}
		all, ok := d.stat(client, "/node/errors").(adapter.SimpleCounterStat)
		if !ok || len(all) != 1 || len(all[0]) < 20 {
			d.Errorf("/node/errors is %+v", all)
		}
	})
}

// TestBuffersAreCountedByPool: from 26.02 on the counters are gauges, which govpp does not read. Then they
// are not reported.
func TestBuffersAreCountedByPool(t *testing.T) {
	asEveryRelease(t, func(d *device) {
		segment, err := statseg.Open(d.stats, time.Second)
		if err != nil {
			d.Fatal(err)
		}
		defer segment.Close()
		if d.isFrom(26, 2) {
			entries, err := d.connectStats().DumpStats("^/buffer-pools/default-numa-0/available$")
			if err != nil || len(entries) != 1 || entries[0].Data != nil {
				d.Errorf("the buffers are %+v, %v", entries, err)
			}
			if reading, err := segment.Read(); err != nil || reading.Buffers != (statseg.Buffers{}) {
				d.Errorf("read %+v, %v", reading.Buffers, err)
			}
			return
		}
		await(d, "VPP has looked at its buffers", func() bool {
			reading, err := segment.Read()
			return err == nil && reading.Buffers.Total > 1000 && reading.Buffers.Free > reading.Buffers.Total/2
		})
		client := d.connectStats()
		for _, name := range []string{"cached", "used", "available"} {
			if _, ok := d.stat(client, "/buffer-pools/default-numa-0/"+name).(adapter.ScalarStat); !ok {
				d.Errorf("%s is %+v", name, d.stat(client, "/buffer-pools/default-numa-0/"+name))
			}
		}
	})
}

// TestEachThreadCountsItsOwnLosses: a reading adds them up.
func TestEachThreadCountsItsOwnLosses(t *testing.T) {
	vpp := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan", "geneve", "gre"}, Workers: 1})
	d := &device{T: t, socket: vpp.APISocket(), stats: vpp.StatsSocket()}
	d.connect()
	port, client := d.port(), d.connectStats()
	for _, name := range []string{"/if/drops", "/if/rx-miss", "/err/vxlan4-input/no such tunnel packets"} {
		if threads, ok := d.stat(client, name).(adapter.SimpleCounterStat); !ok || len(threads) != 2 {
			t.Errorf("%s is %+v", name, d.stat(client, name))
		}
	}
	segment, err := statseg.Open(d.stats, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Close()
	reading, err := segment.Read()
	if err != nil || len(reading.Losses.Drops) <= int(port) || reading.Errors.NoSuchTunnel == nil || reading.Errors.ReassemblyFailed == nil {
		t.Errorf("%+v, %v", reading, err)
	}
}

package snmp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

const many = 1000

// testbed is an engine and a subagent with a VPP.
type testbed struct {
	t           *testing.T
	api, stats  string
	engine      *converge.Engine
	session     *vpp.Session
	traffic     func() // sends traffic and returns when all of it has arrived
	stopVPP     func()
	readSegment func(bootMS int64) (statseg.Reading, error)
}

var local, remote = netip.MustParseAddr("10.255.0.1"), netip.MustParseAddr("10.255.0.2")

// onEveryVPP runs a test with a stand-in and, if one is installed, with a real VPP. Each has a port that
// simulates a customer's port, and a loopback with the router's address.
func onEveryVPP(t *testing.T, test func(*testing.T, *testbed)) {
	t.Run("vppsim", func(t *testing.T) {
		clock := &clock{now: time.Now()}
		sim, err := vppsim.Start(t.Context(), vppsim.Config{
			Interfaces: []vppsim.Interface{{Name: "loop0", Addresses: []netip.Prefix{netip.PrefixFrom(local, 32)}}, {Name: "loop1"}},
			Routes:     []vppsim.Route{{Prefix: netip.PrefixFrom(remote, 32)}},
			Traffic:    vppsim.Traffic{RateBps: 10_000_000_000}, Clock: clock.read,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		b := newTestbed(t, sim.APISocket(), sim.StatsSocket())
		b.traffic = func() { clock.add(time.Minute); sim.Count() }
		b.stopVPP = sim.Stop
		test(t, b)
	})
	t.Run("real VPP", func(t *testing.T) {
		real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}})
		said := func(line string) string {
			out, err := real.CLI(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return out
		}
		for _, line := range []string{
			"create loopback interface", "set interface state loop0 up", "set interface ip address loop0 10.255.0.1/32",
			"create loopback interface", "set interface state loop1 up",
			"create packet-generator interface pg0", "set interface state pg0 up", "set interface ip address pg0 10.1.0.1/24",
			"create packet-generator interface pg1", "set interface state pg1 up", "create sub-interfaces pg1 5", "set interface state pg1.5 up",
			"set interface ip address pg1.5 10.2.0.1/24", "set ip neighbor pg1.5 10.2.0.2 02:00:00:00:00:02",
		} {
			said(line)
		}
		b := newTestbed(t, real.APISocket(), real.StatsSocket())
		b.traffic = func() {
			said("packet-generator new { name some limit 1000 size 200-200 interface pg0 node ip4-input" +
				" data { UDP: 10.1.0.2 -> 10.2.0.2 UDP: 1 -> 2 incrementing 100 } }")
			said("packet-generator enable-stream some")
			for deadline := time.Now().Add(20 * time.Second); !strings.Contains(said("show interface pg1"), "tx packets"); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("no traffic: %s", said("show errors"))
				}
			}
		}
		b.stopVPP = real.Stop
		test(t, b)
	})
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newTestbed(t *testing.T, apiSocket, stats string) *testbed {
	t.Helper()
	b := &testbed{t: t, api: apiSocket, stats: stats}
	folder, log := t.TempDir(), slog.New(slog.NewTextHandler(io.Discard, nil))
	journal, err := ownership.OpenJournal(folder)
	if err != nil {
		t.Fatal(err)
	}
	b.engine = converge.New(intent.OpenStore(folder, "rhino"), journal, log, time.Now, converge.Options{})
	b.session, err = vpp.Dialer{Socket: apiSocket, Timeout: realvpp.ReplyTimeout, BootMS: func(ctx context.Context) (int64, error) {
		return statseg.BootTime(ctx, stats)
	}}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.session.Close)
	b.engine.Attach(b.session)
	segment, mu := statseg.NewReopeningSegment(stats), sync.Mutex{}
	t.Cleanup(segment.Close)
	b.readSegment = func(bootMS int64) (statseg.Reading, error) {
		mu.Lock()
		defer mu.Unlock()
		return segment.Read(bootMS)
	}
	return b
}

// serve runs a subagent until the test ends.
func (b *testbed) serve(socket string) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	subagent := Subagent{
		Socket: socket, Name: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Interfaces: &Interfaces{Engine: b.engine, Counters: b.readSegment, Now: time.Now},
	}
	go func() { subagent.Run(ctx); close(done) }()
	b.t.Cleanup(func() { cancel(); <-done })
}

// fill creates interfaces until there are many, and a line with the last two as its access and tunnel.
func (b *testbed) fill() {
	b.t.Helper()
	port := b.observe()["loop1"]
	for vlan := uint32(1); len(b.observe()) < many-2; vlan++ {
		var requests []api.Message
		for last := vlan + uint32(many-2-len(b.observe())); vlan < last; vlan++ {
			requests = append(requests, &interfaces.CreateSubif{
				SwIfIndex: interface_types.InterfaceIndex(port), SubID: vlan, OuterVlanID: uint16(vlan),
				SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH,
			})
		}
		if _, err := b.session.Calls(b.t.Context(), requests); err != nil {
			b.t.Fatal(err)
		}
	}
	in := &intent.Intent{Router: "rhino", Generation: 1, Present: []intent.End{{
		Key: intent.Key{VLL: line, End: "a"}, Revision: 1, AdminUp: true, Frame: 1514, Label: "Office to mine, ACME",
		Access: intent.Access{Interface: "loop1", Tagging: intent.Dot1q, Outer: 4000, Exact: true},
		Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, Local: local, Remote: remote, VNI: 77},
	}}}
	outcome, err := b.engine.Put(b.t.Context(), in, "")
	if err != nil || len(outcome.Ends) != 1 || outcome.Ends[0].Status != "verified" {
		b.t.Fatalf("%v, %+v", err, outcome)
	}
}

// observe makes the engine observe VPP, and returns the indices by name.
func (b *testbed) observe() map[string]uint32 {
	b.t.Helper()
	if _, _, err := b.engine.Plan(b.t.Context(), &intent.Intent{Router: "rhino", Generation: 1}); err != nil {
		b.t.Fatal(err)
	}
	found := make(map[string]uint32)
	for _, i := range b.engine.LastSnapshot().Interfaces {
		found[i.Name] = i.Index
	}
	return found
}

const (
	ifTable  = "1.3.6.1.2.1.2.2"
	ifXTable = "1.3.6.1.2.1.31.1.1"
)

// byColumn groups the objects of a walk: values by column and ifIndex. The test fails if they are not in
// order.
func byColumn(t *testing.T, objects []object) map[string]map[uint32]string {
	t.Helper()
	columns, before := make(map[string]map[uint32]string), ""
	for _, o := range objects {
		column, instance, _ := cutLast(strings.TrimPrefix(o.oid, "."), ".")
		index, err := strconv.ParseUint(instance, 10, 32)
		if err != nil {
			t.Fatalf("%s: %v", o.oid, err)
		}
		if columns[column] == nil {
			columns[column] = make(map[uint32]string)
		}
		if before != "" && slices.Compare(oid(before), oid(column+"."+instance)) >= 0 {
			t.Errorf("%s.%s comes after %s", column, instance, before)
		}
		before = column + "." + instance
		columns[column][uint32(index)] = o.value
	}
	return columns
}

func cutLast(s, separator string) (before, after string, found bool) {
	at := strings.LastIndex(s, separator)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(separator):], true
}

// TestSNMPReportsCountersOfAThousandInterfaces walks as LibreNMS does, through Debian's snmpd.
func TestSNMPReportsCountersOfAThousandInterfaces(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, b *testbed) {
		m := startMasterOrSkip(t)
		b.fill()
		b.serve(m.socket())
		names := b.observe()
		m.await("1.3.6.1.2.1.2.1.0", func(n string) bool { return n == strconv.Itoa(len(names)) })
		b.traffic()
		time.Sleep(keptFor) // until the cached table has expired

		began, used := time.Now(), cpu(t)
		table := byColumn(t, m.walk(ifTable))
		extended := byColumn(t, m.walk(ifXTable))
		t.Logf("a walk over ifTable and ifXTable of %d interfaces took %s, and this process, with the subagent, %s of CPU",
			len(names), time.Since(began).Round(time.Millisecond), (cpu(t) - used).Round(time.Millisecond))

		reading, err := b.readSegment(b.session.Info().BootMS)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) < many || len(table[ifTable+".1.1"]) != len(names) {
			t.Errorf("%d interfaces, and SNMP reports %d", len(names), len(table[ifTable+".1.1"]))
		}
		nonzero := 0
		for name, index := range names {
			row := index + 1
			rx, tx := reading.Rx[index], reading.Tx[index]
			nonzero += min(1, int(rx.Packets+tx.Packets))
			for column, want := range map[string]string{
				ifTable + ".1.1": strconv.Itoa(int(row)), ifTable + ".1.2": `"` + name + `"`, ifXTable + ".1.1": `"` + name + `"`,
				ifTable + ".1.10": number(uint64(uint32(rx.Bytes))), ifTable + ".1.16": number(uint64(uint32(tx.Bytes))),
				ifTable + ".1.11": number(uint64(uint32(rx.Packets))), ifTable + ".1.17": number(uint64(uint32(tx.Packets))),
				ifXTable + ".1.6": number(rx.Bytes), ifXTable + ".1.10": number(tx.Bytes),
				ifXTable + ".1.7": number(rx.Packets), ifXTable + ".1.11": number(tx.Packets),
			} {
				got := table[column][row]
				if strings.HasPrefix(column, ifXTable) {
					got = extended[column][row]
				}
				if got != want {
					t.Errorf("%s.%d (%s) is %s, want %s", column, row, name, got, want)
				}
			}
		}
		if nonzero < 2 {
			t.Errorf("only %d interfaces have counted anything", nonzero)
		}
		for _, name := range []string{"loop1.4000", "vxlan_tunnel0"} {
			if got := extended[ifXTable+".1.18"][names[name]+1]; got != `"Office to mine, ACME"` {
				t.Errorf("ifAlias of %s is %s", name, got)
			}
		}

		// Several objects in one request, and a read-only object.
		out, err := m.run("snmpget", "public", ifTable+".1.3."+strconv.Itoa(int(names["loop1.4000"]+1)), ifTable+".1.9.1", ifTable+".1.10.999999")
		if err != nil || !strings.Contains(out, "= 135\n") || !strings.Contains(out, "No Such Object") || !strings.Contains(out, "No Such Instance") {
			t.Errorf("get: %v\n%s", err, out)
		}
		if out, err := m.run("snmpset", "private", ifXTable+".1.18.1", "s", "mine"); err == nil || !strings.Contains(out, "notWritable") {
			t.Errorf("set: %v\n%s", err, out)
		}

		m.stop()
		m.start()
		m.await("1.3.6.1.2.1.2.1.0", func(n string) bool { return n == strconv.Itoa(len(names)) })

		b.stopVPP()
		<-b.session.Done()
		b.engine.Attach(nil)
		m.await(ifTable+".1.8."+strconv.Itoa(int(names["loop1"]+1)), func(status string) bool { return status == "4" })
		if left := m.walk(ifXTable + ".1.6"); len(left) != 1 || !strings.Contains(left[0].value, "No Such") {
			t.Errorf("VPP is gone, and counters are there: %d, %v", len(left), left[0])
		}
		if left := m.walk(ifXTable + ".1.1"); len(left) != len(names) {
			t.Errorf("VPP is gone, and %d interfaces are left", len(left))
		}
	})
}

// TestSnmpdReportsNoInterfacesWithoutTheAgent: Linux interfaces would be mistaken for the router's
// interfaces.
func TestSnmpdReportsNoInterfacesWithoutTheAgent(t *testing.T) {
	m := startMasterOrSkip(t, "-I", "-smux,mteTrigger,mteTriggerConf,ifTable,ifXTable")
	m.await("1.3.6.1.2.1.1.3.0", func(string) bool { return true })
	for _, table := range []string{ifTable, ifXTable} {
		if objects := m.walk(table); len(objects) != 1 || !strings.Contains(objects[0].value, "No Such") {
			t.Errorf("%s: %v", table, objects)
		}
	}
}

func number(n uint64) string { return fmt.Sprint(n) }

// cpu returns the CPU time of this process.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

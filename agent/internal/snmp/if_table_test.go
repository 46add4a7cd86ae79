package snmp

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posteo/go-agentx/pdu"
	"github.com/posteo/go-agentx/value"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

const line = "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01"

// router simulates the agent's last observation: a port with a sub-interface of a line, a tunnel, and an
// interface without known properties.
type router struct {
	status  converge.Status
	last    *observe.Snapshot
	reading statseg.Reading
	now     time.Time
}

func (r *router) Status() converge.Status         { return r.status }
func (r *router) LastSnapshot() *observe.Snapshot { return r.last }

func newRouter() *router {
	r := &router{now: time.UnixMilli(1_790_000_000_000)}
	boot := r.now.Add(-time.Hour).UnixMilli()
	r.status.VPP = &vpp.Info{BootMS: boot}
	r.status.Intent = &intent.Intent{Present: []intent.End{{Key: intent.Key{VLL: line, End: "a"}, Label: "Office to mine, ACME"}}}
	r.last = (&observe.Snapshot{
		Boot: ownership.Boot{MS: boot},
		Interfaces: []*observe.Interface{
			{Index: 1, Sup: 1, Name: "eth0", Device: "dpdk", AdminUp: true, LinkUp: true, L3MTU: 9000, SpeedBPS: 100e9, MAC: [6]byte{2, 0, 0, 0, 0, 1}},
			{Index: 4, Sup: 1, Name: "eth0.100", Tag: "longline:" + line + ":a:1", AdminUp: true, LinkUp: true},
			{Index: 5, Sup: 5, Name: "vxlan_tunnel0", Device: "VXLAN", AdminUp: true, LinkUp: true, Tag: "Zürich\x1b[2J", MAC: [6]byte{2, 0, 0, 0, 0, 5}},
			{Index: 9, Sup: 9, Name: "wg0", Device: "Wireguard"},
		},
		Tunnels: []*observe.Tunnel{{Index: 5}},
	}).Index()
	r.reading = statseg.Reading{
		BootMS: boot, Names: []string{"local0", "eth0", "deleted", "deleted", "eth0.100", "vxlan_tunnel0", "", "", "", "another"},
		Rx: make([]statseg.Count, 10), Tx: make([]statseg.Count, 10),
		Losses: statseg.InterfaceLosses{Drops: make([]uint64, 10), RxMiss: make([]uint64, 10), RxNoBuffer: make([]uint64, 10), RxErrors: make([]uint64, 3)},
	}
	r.reading.Rx[1] = statseg.Count{Packets: math.MaxUint32 + 7, Bytes: 1<<40 + 9}
	r.reading.Losses.Drops[1], r.reading.Losses.RxMiss[1], r.reading.Losses.RxNoBuffer[1] = 5, 6, 7
	return r
}

func (r *router) interfaces() *Interfaces {
	return &Interfaces{
		Engine: r, Now: func() time.Time { return r.now },
		Counters: func(int64) (statseg.Reading, error) {
			reading := r.reading
			reading.Rx = slices.Clone(r.reading.Rx)
			return reading, nil
		},
	}
}

func oid(text string) value.OID { return value.MustParseOID(text) }

// walk returns all following objects, one request after the other.
func walk(t *Table, from string) (found []pdu.Variable) {
	for at := oid(from); ; {
		v := t.next(at, false, nil)
		if v.Type == pdu.VariableTypeEndOfMIBView {
			return found
		}
		found = append(found, v)
		at = v.Name.GetIdentifier()
	}
}

func TestWalkReturnsAllColumnsInOrder(t *testing.T) {
	r := newRouter()
	found := walk(r.interfaces().table(r.now), "1.3.6.1.2.1")
	for i := 1; i < len(found); i++ {
		if before, now := found[i-1].Name.GetIdentifier(), found[i].Name.GetIdentifier(); slices.Compare(before, now) >= 0 {
			t.Errorf("%s comes after %s", now, before)
		}
	}
	// 1 scalar; 12 columns with 4 rows (ifMtu with 2) and 6 counters of ifTable with 3, except ifInErrors
	// with 1 and ifOutErrors with none. 5 columns of ifXTable with 4, and 5 counters with their
	// discontinuity with 3.
	perColumn := make(map[string]int)
	for _, v := range found {
		perColumn[v.Name.GetIdentifier().First(len(v.Name.Subidentifiers)-1).String()]++
	}
	for i := range columns {
		c := &columns[i]
		want := 4
		switch c.name {
		case "ifNumber", "ifInErrors":
			want = 1
		case "ifMtu":
			want = 2
		case "ifInOctets", "ifInUcastPkts", "ifInDiscards", "ifOutOctets", "ifOutUcastPkts", "ifHCInOctets", "ifHCInUcastPkts", "ifHCOutOctets",
			"ifHCOutUcastPkts", "ifCounterDiscontinuityTime":
			want = 3
		case "ifOutErrors":
			want = 0
		}
		if got := perColumn[c.oid.String()]; got != want {
			t.Errorf("%s has %d, want %d", c.name, got, want)
		}
	}
}

func TestNextFindsTheObjectAfterAnyNumber(t *testing.T) {
	r := newRouter()
	table := r.interfaces().table(r.now)
	for _, c := range []struct {
		from    string
		include bool
		to      string
		want    string // "" for the end
	}{
		{"1.3.6.1.2.1.2.1", false, "", "1.3.6.1.2.1.2.1.0"},
		{"1.3.6.1.2.1.2.1.0", true, "", "1.3.6.1.2.1.2.1.0"},
		{"1.3.6.1.2.1.2.1.0", false, "", "1.3.6.1.2.1.2.2.1.1.2"},
		{"1.3.6.1.2.1.2.2", false, "1.3.6.1.2.1.2.3", "1.3.6.1.2.1.2.2.1.1.2"},
		{"1.3.6.1.2.1.2.2.1.2.3", false, "", "1.3.6.1.2.1.2.2.1.2.5"},   // between two rows
		{"1.3.6.1.2.1.2.2.1.2.5.0", true, "", "1.3.6.1.2.1.2.2.1.2.6"},  // below a row
		{"1.3.6.1.2.1.2.2.1.2.10", false, "", "1.3.6.1.2.1.2.2.1.3.2"},  // the last row of a column
		{"1.3.6.1.2.1.2.2.1.4.5", false, "", "1.3.6.1.2.1.2.2.1.5.2"},   // ifMtu of the others is unknown
		{"1.3.6.1.2.1.2.2.1.8.10", false, "", "1.3.6.1.2.1.2.2.1.10.2"}, // there is no ifLastChange
		{"1.3.6.1.2.1.2.2.1.17.6", false, "1.3.6.1.2.1.2.3", ""},        // there is no ifOutErrors, and the other table has another prefix
		{"1.3.6.1.2.1.2.2.1.17.6", false, "", "1.3.6.1.2.1.31.1.1.1.1.2"},
		{"1.3.6.1.2.1.31.1.1.1.19.6", false, "", ""},
		{"1.3.6.1.2.1.99", false, "", ""},
	} {
		var to value.OID
		if c.to != "" {
			to = oid(c.to)
		}
		v := table.next(oid(c.from), c.include, to)
		want := c.want
		if want == "" {
			want = c.from
		}
		if got := v.Name.GetIdentifier().String(); got != want || (v.Type == pdu.VariableTypeEndOfMIBView) != (c.want == "") {
			t.Errorf("after %s comes %s (%s), want %q", c.from, got, v.Type, c.want)
		}
	}
}

func TestCellsHaveTheValuesOfRFC2863(t *testing.T) {
	r := newRouter()
	r.status.VPP.Version = "25.10"
	table := r.interfaces().table(r.now)
	for _, c := range []struct {
		oid  string
		kind pdu.VariableType
		want any
	}{
		{"1.3.6.1.2.1.2.1.0", pdu.VariableTypeInteger, int32(4)},
		{"1.3.6.1.2.1.2.2.1.2.2", pdu.VariableTypeOctetString, "eth0"},
		{"1.3.6.1.2.1.2.2.1.3.2", pdu.VariableTypeInteger, int32(ethernetCsmacd)},
		{"1.3.6.1.2.1.2.2.1.3.5", pdu.VariableTypeInteger, int32(l2vlan)},
		{"1.3.6.1.2.1.2.2.1.3.6", pdu.VariableTypeInteger, int32(tunnel)},
		{"1.3.6.1.2.1.2.2.1.3.10", pdu.VariableTypeInteger, int32(other)},
		{"1.3.6.1.2.1.2.2.1.4.5", pdu.VariableTypeInteger, int32(9000)}, // of the port
		{"1.3.6.1.2.1.2.2.1.5.5", pdu.VariableTypeGauge32, uint32(math.MaxUint32)},
		{"1.3.6.1.2.1.2.2.1.6.2", pdu.VariableTypeOctetString, "\x02\x00\x00\x00\x00\x01"},
		{"1.3.6.1.2.1.2.2.1.6.5", pdu.VariableTypeOctetString, "\x02\x00\x00\x00\x00\x01"}, // of the port
		{"1.3.6.1.2.1.2.2.1.6.10", pdu.VariableTypeOctetString, ""},
		{"1.3.6.1.2.1.2.2.1.7.10", pdu.VariableTypeInteger, int32(2)},
		{"1.3.6.1.2.1.2.2.1.8.5", pdu.VariableTypeInteger, int32(operUp)},
		{"1.3.6.1.2.1.2.2.1.8.10", pdu.VariableTypeInteger, int32(operDown)},
		{"1.3.6.1.2.1.2.2.1.10.2", pdu.VariableTypeCounter32, uint32(9)},
		{"1.3.6.1.2.1.2.2.1.11.2", pdu.VariableTypeCounter32, uint32(6)},
		{"1.3.6.1.2.1.2.2.1.13.2", pdu.VariableTypeCounter32, uint32(18)},
		{"1.3.6.1.2.1.31.1.1.1.6.2", pdu.VariableTypeCounter64, uint64(1<<40 + 9)},
		{"1.3.6.1.2.1.31.1.1.1.7.2", pdu.VariableTypeCounter64, uint64(math.MaxUint32 + 7)},
		{"1.3.6.1.2.1.31.1.1.1.15.5", pdu.VariableTypeGauge32, uint32(100_000)},
		{"1.3.6.1.2.1.31.1.1.1.17.2", pdu.VariableTypeInteger, int32(1)},
		{"1.3.6.1.2.1.31.1.1.1.17.5", pdu.VariableTypeInteger, int32(2)},
		{"1.3.6.1.2.1.31.1.1.1.18.2", pdu.VariableTypeOctetString, ""},
		{"1.3.6.1.2.1.31.1.1.1.18.5", pdu.VariableTypeOctetString, "Office to mine, ACME"},
		{"1.3.6.1.2.1.31.1.1.1.18.6", pdu.VariableTypeOctetString, "Z?rich?[2J"},
		{"1.3.6.1.2.1.2.2.1.9.2", pdu.VariableTypeNoSuchObject, nil},     // ifLastChange
		{"1.3.6.1.2.1.2.2.1.10.10", pdu.VariableTypeNoSuchInstance, nil}, // another interface has this index now
		{"1.3.6.1.2.1.2.2.1.10.3", pdu.VariableTypeNoSuchInstance, nil},
		{"1.3.6.1.2.1.2.2.1.10", pdu.VariableTypeNoSuchInstance, nil},
		{"1.3.6.1.2.1.2.2.1.10.2.1", pdu.VariableTypeNoSuchInstance, nil},
	} {
		if v := table.get(oid(c.oid)); v.Type != c.kind || v.Value != c.want {
			t.Errorf("%s is %s %v, want %s %v", c.oid, v.Type, v.Value, c.kind, c.want)
		}
	}
}

func TestAliasIsTheLabelOrTheLinesID(t *testing.T) {
	sub := newRouter().last.ByName("eth0.100")
	if got := aliasOf(sub, nil); got != line+":a" {
		t.Errorf("without a label it is %q", got)
	}
	if got := shortened(strings.Repeat("ü", 100)); got != strings.Repeat("?", 64) {
		t.Errorf("a long one is %q", got)
	}
}

func TestOperStatusIsLowerLayerDownWhileThePortIsDown(t *testing.T) {
	r := newRouter()
	r.last.ByName("eth0").LinkUp = false
	if v := r.interfaces().table(r.now).get(oid("1.3.6.1.2.1.2.2.1.8.5")); v.Value != int32(operLowerLayerDown) {
		t.Errorf("ifOperStatus is %v", v.Value)
	}
}

func TestTableKeepsInterfacesWithoutCountersWhileVPPIsDisconnected(t *testing.T) {
	for _, c := range []struct {
		absent bool
		want   operStatus
	}{{true, operDown}, {false, operUnknown}} {
		r := newRouter()
		interfaces := r.interfaces()
		interfaces.table(r.now)
		r.status.VPP, r.status.Absent, r.last, r.now = nil, c.absent, nil, r.now.Add(time.Minute)
		table := interfaces.table(r.now)
		for _, v := range walk(table, "1.3.6.1.2.1") {
			if v.Type == pdu.VariableTypeCounter32 || v.Type == pdu.VariableTypeCounter64 {
				t.Errorf("%s is still %v", v.Name, v.Value)
			}
		}
		if v := table.get(oid("1.3.6.1.2.1.2.2.1.8.2")); v.Value != int32(c.want) {
			t.Errorf("absent %t: ifOperStatus is %v, want %d", c.absent, v.Value, c.want)
		}
	}
}

// TestDiscontinuityIsTheTimeOfTheDetectedBreak: 0 if the counters are continuous since before snmpd
// started, and otherwise the sysUpTime of the break.
func TestDiscontinuityIsTheTimeOfTheDetectedBreak(t *testing.T) {
	const at = "1.3.6.1.2.1.31.1.1.1.19.2"
	r := newRouter()
	interfaces, snmpd := r.interfaces(), r.now.Add(-10*time.Minute)
	discontinuity := func(since time.Time) time.Duration {
		r.now = r.now.Add(time.Minute)
		v := interfaces.table(since).get(oid(at))
		ticks, _ := v.Value.(time.Duration)
		return ticks
	}
	if got := discontinuity(snmpd); got != 0 {
		t.Errorf("VPP started before snmpd, and it is %v", got)
	}
	r.reading.Rx[1].Bytes++
	if got := discontinuity(snmpd); got != 0 {
		t.Errorf("the counters went on, and it is %v", got)
	}
	r.reading.Rx[1] = statseg.Count{}
	if got := discontinuity(snmpd); got != 13*time.Minute {
		t.Errorf("the counters were cleared, and it is %v", got)
	}
	if got := discontinuity(snmpd.Add(11 * time.Minute)); got != 2*time.Minute {
		t.Errorf("snmpd restarted after VPP, and it is %v", got)
	}
	next := *r.last
	next.Boot.MS = r.now.Add(30 * time.Second).UnixMilli()
	r.last, r.status.VPP = &next, &vpp.Info{BootMS: next.Boot.MS}
	if got := discontinuity(snmpd); got != 14*time.Minute+30*time.Second {
		t.Errorf("VPP restarted, and it is %v", got)
	}
}

func TestTableIsReadAgainAfterASecondAndForAnotherMaster(t *testing.T) {
	r := newRouter()
	interfaces := r.interfaces()
	first := interfaces.table(r.now)
	if interfaces.table(first.UpSince) != first {
		t.Error("at once it is another one")
	}
	if interfaces.table(first.UpSince.Add(time.Hour)).UpSince.Equal(first.UpSince) {
		t.Error("another master gets that of the first")
	}
	r.now = r.now.Add(keptFor)
	if interfaces.table(first.UpSince) == first {
		t.Error("a second later it is the same")
	}
}

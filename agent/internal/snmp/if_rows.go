package snmp

import (
	"cmp"
	"strings"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/statseg"
)

// row is one interface. Its ifIndex is sw_if_index + 1, because an ifIndex is greater than zero.
type row struct {
	*observe.Interface
	kind       kind
	port       *observe.Interface // the port of a sub-interface; otherwise the interface itself
	alias      string
	oper       operStatus
	counts     *counts // nil if unknown
	continuous time.Time
}

// counts has the counters of an interface. A counter is nil if VPP does not have it.
type counts struct {
	in, out                       statseg.Count
	inDiscards, inErrors, outLost *uint64
}

func (r *row) ifIndex() uint32 { return r.Index + 1 }

// kind is an IANAifType.
type kind int32

const (
	other            kind = 1
	ethernetCsmacd   kind = 6
	softwareLoopback kind = 24
	tunnel           kind = 131
	l2vlan           kind = 135
	ieee8023adLag    kind = 161
)

func kindOf(i *observe.Interface, s *observe.Snapshot) kind {
	switch {
	case i.IsSub():
		return l2vlan
	case s.TunnelAt(i.Index) != nil, strings.Contains(i.Device, "tunnel"):
		return tunnel
	case i.Device == "Loopback":
		return softwareLoopback
	case i.Device == "bond":
		return ieee8023adLag
	case i.MAC == [6]byte{}:
		return other // local0 and interfaces without Ethernet
	}
	return ethernetCsmacd
}

// operStatus is ifOperStatus.
type operStatus int32

const (
	operUp             operStatus = 1
	operDown           operStatus = 2
	operUnknown        operStatus = 4
	operLowerLayerDown operStatus = 7
)

func operStatusOf(i, port *observe.Interface) operStatus {
	switch {
	case !i.AdminUp:
		return operDown
	case i.IsSub() && !(port.AdminUp && port.LinkUp):
		return operLowerLayerDown
	case !i.LinkUp:
		return operDown
	}
	return operUp
}

// countsOf returns the counters of an interface. VPP reuses indices, so countsOf returns nil if the counters
// at the index are missing or belong to another interface.
func countsOf(i *observe.Interface, r *statseg.Reading) *counts {
	at := int(i.Index)
	if at >= min(len(r.Rx), len(r.Tx), len(r.Names)) || r.Names[at] != i.Name {
		return nil
	}
	l := &r.Losses
	return &counts{
		in: r.Rx[at], out: r.Tx[at],
		inDiscards: sumAt(at, l.Drops, l.RxMiss, l.RxNoBuffer), inErrors: sumAt(at, l.RxErrors), outLost: sumAt(at, l.TxErrors),
	}
}

// sumAt returns the sum of the counters at this index, or nil if one of the vectors has no such counter.
func sumAt(at int, vectors ...[]uint64) *uint64 {
	sum := new(uint64)
	for _, v := range vectors {
		if at >= len(v) {
			return nil
		}
		*sum += v[at]
	}
	return sum
}

// wentBack reports whether any counter in c is lower than in before. In this case the counters were cleared,
// or belong to another interface.
func (c *counts) wentBack(before *counts) bool {
	less := func(now, before *uint64) bool { return now != nil && before != nil && *now < *before }
	return c.in.Packets < before.in.Packets || c.in.Bytes < before.in.Bytes || c.out.Packets < before.out.Packets || c.out.Bytes < before.out.Bytes ||
		less(c.inDiscards, before.inDiscards) || less(c.inErrors, before.inErrors) || less(c.outLost, before.outLost)
}

// Engine is the source of the interfaces.
type Engine interface {
	Status() converge.Status
	LastSnapshot() *observe.Snapshot
}

// Interfaces returns the interfaces of the agent's last observation with their current counters. It sends
// no messages to VPP. Only one goroutine may use it.
type Interfaces struct {
	Engine Engine
	// Counters reads the stats segment of the VPP that started at bootMS.
	Counters func(bootMS int64) (statseg.Reading, error)
	Now      func() time.Time

	last *observe.Snapshot
	made moment
}

// moment is a table together with the run of VPP that it describes.
type moment struct {
	table  *Table
	at     time.Time
	bootMS int64
}

// keptFor is the time for which a table is reused. It is reused because a walk over 1,000 interfaces sends
// 26,000 requests.
const keptFor = time.Second

// table returns a table that is at most a second old. upSince is the start time of the SNMP agent.
func (i *Interfaces) table(upSince time.Time) *Table {
	now := i.Now()
	last := i.made.table
	if age := now.Sub(i.made.at); last != nil && last.UpSince.Equal(upSince) && age >= 0 && age < keptFor {
		return last
	}
	status := i.Engine.Status()
	if s := i.Engine.LastSnapshot(); s != nil {
		i.last = s
	}
	i.made.table, i.made.at = i.read(status, last, upSince, now), now
	if i.last != nil {
		i.made.bootMS = i.last.Boot.MS
	}
	return i.made.table
}

// read returns a new table. While VPP is not connected, the table keeps the interfaces without counters, so
// that network management does not treat them as removed.
func (i *Interfaces) read(status converge.Status, last *Table, upSince, now time.Time) *Table {
	t := &Table{UpSince: upSince}
	if i.last == nil {
		return t
	}
	connected := status.VPP != nil && status.VPP.BootMS == i.last.Boot.MS
	var reading *statseg.Reading
	if connected {
		if r, err := i.Counters(i.last.Boot.MS); err == nil {
			reading = &r
		}
	}
	labels := labelsOf(status.Intent)
	t.rows = make([]row, 0, len(i.last.Interfaces))
	for _, each := range i.last.Interfaces {
		r := row{Interface: each, kind: kindOf(each, i.last), port: i.last.ByIndex(each.Sup), alias: aliasOf(each, labels)}
		if r.port == nil {
			r.port = each // the port is just being deleted
		}
		switch {
		case connected:
			r.oper = operStatusOf(each, r.port)
		case status.Absent:
			r.oper = operDown
		default:
			r.oper = operUnknown
		}
		if reading != nil {
			r.counts = countsOf(each, reading)
		}
		r.continuous = i.continuous(&r, last, now)
		t.rows = append(t.rows, r)
	}
	return t
}

// continuous returns the time since which the counters are continuous: VPP's start, or the time of
// a detected break.
func (i *Interfaces) continuous(r *row, last *Table, now time.Time) time.Time {
	if last == nil || len(last.rows) == 0 || i.made.bootMS != i.last.Boot.MS {
		return time.UnixMilli(i.last.Boot.MS)
	}
	at, exists := last.search(&columns[1], r.ifIndex())
	if !exists || last.rows[at].Name != r.Name {
		return now
	}
	before := &last.rows[at]
	if r.counts != nil && before.counts != nil && r.counts.wentBack(before.counts) {
		return now
	}
	return before.continuous
}

func labelsOf(stored *intent.Intent) map[intent.Key]string {
	if stored == nil {
		return nil
	}
	labels := make(map[intent.Key]string, len(stored.Present))
	for _, e := range stored.Present {
		labels[e.Key] = e.Label
	}
	return labels
}

// aliasLength is the maximum length of an ifAlias (RFC 2863).
const aliasLength = 64

// aliasOf returns the ifAlias of an interface. For an interface of the agent, this is the portal's label of
// the line or, if there is no label, the id of the line and the end. For any other interface it is the
// interface's tag.
func aliasOf(i *observe.Interface, labels map[intent.Key]string) string {
	tag, ours := ownership.ParseTag(i.Tag)
	if !ours {
		return shortened(i.Tag)
	}
	return shortened(cmp.Or(labels[tag.Key], tag.Key.String()))
}

// shortened returns a DisplayString that fits into an ifAlias. It replaces each character that is not
// printable ASCII by a question mark.
func shortened(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), aliasLength)]
}

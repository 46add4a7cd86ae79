package snmp

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/posteo/go-agentx/pdu"
	"github.com/posteo/go-agentx/value"
)

// Table is the set of interfaces at one moment. It creates a cell when the cell is requested and does not
// keep the cell, because even a walk over 1,000 interfaces requests each cell only once.
type Table struct {
	// UpSince is the start time of the SNMP agent, the zero point of sysUpTime.
	UpSince time.Time
	rows    []row // sorted by ifIndex
}

// get returns the object with this OID. It returns noSuchObject if there is no such column, and
// noSuchInstance if there is no such row or no value.
func (t *Table) get(oid value.OID) pdu.Variable {
	kind := pdu.VariableTypeNoSuchObject
	for i := range columns {
		c := &columns[i]
		if !hasPrefix(oid, c.oid) {
			continue
		}
		kind = pdu.VariableTypeNoSuchInstance
		if rest := oid[len(c.oid):]; len(rest) == 1 {
			at, exists := t.search(c, rest[0])
			if exists {
				if found := t.at(c, at); found != nil {
					return named(found, oid)
				}
			}
		}
	}
	return named(&pdu.Variable{Type: kind}, oid)
}

// next returns the first object whose OID is greater than from and less than to. If include is true, the OID
// can also be equal to from. An empty to means that there is no upper bound. If there is no such object, next
// returns endOfMibView.
func (t *Table) next(from value.OID, include bool, to value.OID) pdu.Variable {
	for i := range columns {
		c := &columns[i]
		for at := t.first(c, from, include); at < t.length(c); at++ {
			found := t.at(c, at)
			if found == nil {
				continue
			}
			oid := append(slices.Clip(c.oid), t.instance(c, at))
			if len(to) > 0 && slices.Compare(oid, to) >= 0 {
				return named(&pdu.Variable{Type: pdu.VariableTypeEndOfMIBView}, from)
			}
			return named(found, oid)
		}
	}
	return named(&pdu.Variable{Type: pdu.VariableTypeEndOfMIBView}, from)
}

// first returns the first position in a column whose object can follow the OID from. If no row follows, it
// returns the length of the column.
func (t *Table) first(c *column, from value.OID, include bool) int {
	if !hasPrefix(from, c.oid) {
		if slices.Compare(from, c.oid) < 0 {
			return 0
		}
		return t.length(c)
	}
	rest := from[len(c.oid):]
	if len(rest) == 0 {
		return 0
	}
	at, exists := t.search(c, rest[0])
	if exists && (len(rest) > 1 || !include) {
		at++
	}
	return at
}

// search returns the position of an instance in a column, or the position where it would be.
func (t *Table) search(c *column, instance uint32) (at int, exists bool) {
	if c.scalar {
		return int(min(instance, 1)), instance == 0
	}
	return slices.BinarySearchFunc(t.rows, instance, func(r row, instance uint32) int { return cmp.Compare(r.ifIndex(), instance) })
}

func (t *Table) length(c *column) int {
	if c.scalar {
		return 1
	}
	return len(t.rows)
}

func (t *Table) instance(c *column, at int) uint32 {
	if c.scalar {
		return 0
	}
	return t.rows[at].ifIndex()
}

func (t *Table) at(c *column, at int) cell {
	if c.scalar {
		return c.cell(t, nil)
	}
	return c.cell(t, &t.rows[at])
}

func named(v cell, oid value.OID) pdu.Variable {
	named := *v
	named.Name.SetIdentifier(oid)
	return named
}

func hasPrefix(oid, prefix value.OID) bool {
	return len(oid) >= len(prefix) && slices.Equal(oid[:len(prefix)], prefix)
}

// cell is the value of one object, or nil if the object has no value.
type cell *pdu.Variable

// column is one object type. A column of a table has an instance for each row. A scalar has only the instance
// 0.
type column struct {
	name   string
	oid    value.OID
	cell   func(*Table, *row) cell
	scalar bool
}

// registered lists the subtrees that this subagent serves.
var registered = []value.OID{mib2Interfaces(1), mib2Interfaces(2), ifMIB(1, 1)}

// columns lists all objects in the order of their numbers. It omits objects for which VPP has no value, and
// snmpd replies noSuchObject for them.
var columns = []column{
	{name: "ifNumber", oid: mib2Interfaces(1), scalar: true, cell: func(t *Table, _ *row) cell { return integer(int32(len(t.rows))) }},
	{name: "ifIndex", oid: mib2Interfaces(2, 1, 1), cell: of(func(r *row) cell { return integer(int32(r.ifIndex())) })},
	{name: "ifDescr", oid: mib2Interfaces(2, 1, 2), cell: of(func(r *row) cell { return text(r.Name) })},
	{name: "ifType", oid: mib2Interfaces(2, 1, 3), cell: of(func(r *row) cell { return integer(int32(r.kind)) })},
	{name: "ifMtu", oid: mib2Interfaces(2, 1, 4), cell: of(mtu)},
	{name: "ifSpeed", oid: mib2Interfaces(2, 1, 5), cell: of(func(r *row) cell { return gauge(min(r.port.SpeedBPS, math.MaxUint32)) })},
	{name: "ifPhysAddress", oid: mib2Interfaces(2, 1, 6), cell: of(physAddress)},
	{name: "ifAdminStatus", oid: mib2Interfaces(2, 1, 7), cell: of(func(r *row) cell { return oneOrTwo(r.AdminUp) })},
	{name: "ifOperStatus", oid: mib2Interfaces(2, 1, 8), cell: of(func(r *row) cell { return integer(int32(r.oper)) })},
	{name: "ifInOctets", oid: mib2Interfaces(2, 1, 10), cell: counted(func(c *counts) cell { return counter32(c.in.Bytes) })},
	{name: "ifInUcastPkts", oid: mib2Interfaces(2, 1, 11), cell: counted(func(c *counts) cell { return counter32(c.in.Packets) })},
	{name: "ifInDiscards", oid: mib2Interfaces(2, 1, 13), cell: counted(func(c *counts) cell { return known32(c.inDiscards) })},
	{name: "ifInErrors", oid: mib2Interfaces(2, 1, 14), cell: counted(func(c *counts) cell { return known32(c.inErrors) })},
	{name: "ifOutOctets", oid: mib2Interfaces(2, 1, 16), cell: counted(func(c *counts) cell { return counter32(c.out.Bytes) })},
	{name: "ifOutUcastPkts", oid: mib2Interfaces(2, 1, 17), cell: counted(func(c *counts) cell { return counter32(c.out.Packets) })},
	{name: "ifOutErrors", oid: mib2Interfaces(2, 1, 20), cell: counted(func(c *counts) cell { return known32(c.outLost) })},

	{name: "ifName", oid: ifMIB(1, 1, 1, 1), cell: of(func(r *row) cell { return text(r.Name) })},
	{name: "ifHCInOctets", oid: ifMIB(1, 1, 1, 6), cell: counted(func(c *counts) cell { return counter64(c.in.Bytes) })},
	{name: "ifHCInUcastPkts", oid: ifMIB(1, 1, 1, 7), cell: counted(func(c *counts) cell { return counter64(c.in.Packets) })},
	{name: "ifHCOutOctets", oid: ifMIB(1, 1, 1, 10), cell: counted(func(c *counts) cell { return counter64(c.out.Bytes) })},
	{name: "ifHCOutUcastPkts", oid: ifMIB(1, 1, 1, 11), cell: counted(func(c *counts) cell { return counter64(c.out.Packets) })},
	{name: "ifLinkUpDownTrapEnable", oid: ifMIB(1, 1, 1, 14), cell: of(func(*row) cell { return integer(2) })}, // disabled: no trap is sent
	{name: "ifHighSpeed", oid: ifMIB(1, 1, 1, 15), cell: of(highSpeed)},
	{name: "ifConnectorPresent", oid: ifMIB(1, 1, 1, 17), cell: of(connectorPresent)},
	{name: "ifAlias", oid: ifMIB(1, 1, 1, 18), cell: of(func(r *row) cell { return text(r.alias) })},
	{name: "ifCounterDiscontinuityTime", oid: ifMIB(1, 1, 1, 19), cell: discontinuity},
}

// mib2Interfaces returns an OID below the group interfaces of MIB-II (RFC 1213).
func mib2Interfaces(below ...uint32) value.OID {
	return append(value.OID{1, 3, 6, 1, 2, 1, 2}, below...)
}
func ifMIB(below ...uint32) value.OID { return append(value.OID{1, 3, 6, 1, 2, 1, 31}, below...) }

func of(get func(*row) cell) func(*Table, *row) cell {
	return func(_ *Table, r *row) cell { return get(r) }
}

// counted returns the cell function of a counter. The cell has no value if the counters are unknown.
func counted(get func(*counts) cell) func(*Table, *row) cell {
	return func(_ *Table, r *row) cell {
		if r.counts == nil {
			return nil
		}
		return get(r.counts)
	}
}

// mtu returns the L3 MTU (bytes). A sub-interface without its own MTU has the MTU of its port.
func mtu(r *row) cell {
	for _, octets := range []uint32{r.L3MTU, r.port.L3MTU} {
		if octets != 0 {
			return integer(int32(min(octets, math.MaxInt32)))
		}
	}
	return nil
}

// physAddress returns the address of the interface's port, because VPP reports no address for a
// sub-interface. If the port has no address, the value is empty (RFC 2863).
func physAddress(r *row) cell {
	if r.port.MAC == [6]byte{} {
		return text("")
	}
	return text(string(r.port.MAC[:]))
}

// highSpeed returns the speed in Mbit/s, rounded.
func highSpeed(r *row) cell { return gauge(min((r.port.SpeedBPS+500_000)/1_000_000, math.MaxUint32)) }

// virtual lists devices that look like Ethernet ports but lead to a program or to other ports.
var virtual = []string{"memif", "tap", "tun", "virtio", "pipe", "bvi"}

// connectorPresent returns true (1) for a device that can be a network card, and false (2) for other devices.
func connectorPresent(r *row) cell {
	return oneOrTwo(r.kind == ethernetCsmacd && !slices.Contains(virtual, r.Device))
}

// discontinuity returns the value of sysUpTime at the beginning of the time in which the counters are
// continuous. 0 means that this time began before snmpd started.
func discontinuity(t *Table, r *row) cell {
	if r.counts == nil {
		return nil
	}
	return variable(pdu.VariableTypeTimeTicks, max(0, r.continuous.Sub(t.UpSince))%timeTicksWrap)
}

// timeTicksWrap is the duration after which the number of hundredths of a second no longer fits into 32 bits.
const timeTicksWrap = (1 << 32) * 10 * time.Millisecond

func variable(kind pdu.VariableType, v any) cell { return &pdu.Variable{Type: kind, Value: v} }

// oneOrTwo returns 1 (true, up) or 2 (false, down).
func oneOrTwo(one bool) cell {
	if one {
		return integer(1)
	}
	return integer(2)
}

func integer(n int32) cell    { return variable(pdu.VariableTypeInteger, n) }
func text(s string) cell      { return variable(pdu.VariableTypeOctetString, s) }
func gauge(n uint64) cell     { return variable(pdu.VariableTypeGauge32, uint32(n)) }
func counter64(n uint64) cell { return variable(pdu.VariableTypeCounter64, n) }

// counter32 returns the lower 32 bits of a counter, which wrap like a 32-bit counter.
func counter32(n uint64) cell { return variable(pdu.VariableTypeCounter32, uint32(n)) }

func known32(n *uint64) cell {
	if n == nil {
		return nil
	}
	return counter32(*n)
}

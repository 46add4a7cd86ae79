package snmp

import (
	"cmp"
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

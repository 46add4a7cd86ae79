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

// Engine is where the interfaces come from.
type Engine interface {
	Status() converge.Status
	LastSnapshot() *observe.Snapshot
}

// Interfaces are VPP's as the agent saw them last, which asks VPP nothing, with what they have counted by now. One
// goroutine may use them.
type Interfaces struct {
	Engine Engine
	// Counters reads the stats segment of the VPP that started at bootMS.
	Counters func(bootMS int64) (statseg.Reading, error)
	Now      func() time.Time

	seen *observe.Snapshot
	made moment
}

// moment is a table with the run of VPP that it shows.
type moment struct {
	table  *Table
	at     time.Time
	bootMS int64
}

// keptFor is how long a table answers: a walk over 1,000 interfaces comes in 26,000 questions.
const keptFor = time.Second

// table is the table of now, or of a second ago. upSince is when the SNMP agent began.
func (i *Interfaces) table(upSince time.Time) *Table {
	now := i.Now()
	last := i.made.table
	if age := now.Sub(i.made.at); last != nil && last.UpSince.Equal(upSince) && age >= 0 && age < keptFor {
		return last
	}
	status := i.Engine.Status()
	if s := i.Engine.LastSnapshot(); s != nil {
		i.seen = s
	}
	i.made.table, i.made.at = i.read(status, last, upSince, now), now
	if i.seen != nil {
		i.made.bootMS = i.seen.Boot.MS
	}
	return i.made.table
}

// read makes a table. While VPP is away it has the interfaces that were there, so that nobody takes them for removed; they
// have counted nothing that anybody knows.
func (i *Interfaces) read(status converge.Status, last *Table, upSince, now time.Time) *Table {
	t := &Table{UpSince: upSince}
	if i.seen == nil {
		return t
	}
	connected := status.VPP != nil && status.VPP.BootMS == i.seen.Boot.MS
	var reading *statseg.Reading
	if connected {
		if r, err := i.Counters(i.seen.Boot.MS); err == nil {
			reading = &r
		}
	}
	labels := labelsOf(status.Held)
	t.rows = make([]row, 0, len(i.seen.Interfaces))
	for _, each := range i.seen.Interfaces {
		r := row{Interface: each, kind: kindOf(each, i.seen), port: i.seen.ByIndex(each.Sup), alias: aliasOf(each, labels)}
		if r.port == nil {
			r.port = each // somebody deletes the port at this moment
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

// continuous is since when the counters of an interface go on: since VPP started, or since it was seen that they did not.
func (i *Interfaces) continuous(r *row, last *Table, now time.Time) time.Time {
	if last == nil || len(last.rows) == 0 || i.made.bootMS != i.seen.Boot.MS {
		return time.UnixMilli(i.seen.Boot.MS)
	}
	at, there := last.search(&columns[1], r.ifIndex())
	if !there || last.rows[at].Name != r.Name {
		return now
	}
	before := &last.rows[at]
	if r.counts != nil && before.counts != nil && r.counts.wentBack(before.counts) {
		return now
	}
	return before.continuous
}

func labelsOf(held *intent.Intent) map[intent.Key]string {
	if held == nil {
		return nil
	}
	labels := make(map[intent.Key]string, len(held.Present))
	for _, e := range held.Present {
		labels[e.Key] = e.Label
	}
	return labels
}

// aliasLength is the most that an ifAlias holds (RFC 2863).
const aliasLength = 64

// aliasOf is the line that an interface is for, by the portal's words or else by its id, and what others wrote on theirs.
func aliasOf(i *observe.Interface, labels map[intent.Key]string) string {
	tag, ours := ownership.ParseTag(i.Tag)
	if !ours {
		return shortened(i.Tag)
	}
	return shortened(cmp.Or(labels[tag.Key], tag.Key.String()))
}

// shortened is a DisplayString that an ifAlias holds: printable ASCII, of a character that is none a question mark.
func shortened(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), aliasLength)]
}

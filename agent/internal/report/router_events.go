package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/spool"
)

// routerView is the state of the router at one time. The differences between two successive views are
// reported as events.
type routerView struct {
	vpp         *runOf // nil if VPP is not connected
	applied     *converge.Applied
	known       bool            // there is an observed state; otherwise the members below are those of an earlier view, or nil
	links       map[string]bool // interfaces that the agent did not create: admin up and link up
	conflicts   map[intent.Key]string
	quarantined map[quarantine]bool
	drift       map[intent.Key]string // changes by other clients
	contested   map[intent.Key]string // settings that other clients change again after each repair
	vlans       vlanEvents            // new findings about rebuilt sub-interfaces
}

// runOf identifies one run of VPP.
type runOf struct {
	version string
	pid     uint32
	bootMS  int64
}

type quarantine struct {
	end intent.Key
	on  string
}

// routerViewOf returns the view of an observed state. If p is nil, the view contains only the applied
// generation, and the version, the PID and the boot time of the connected VPP.
func routerViewOf(status converge.Status, p *converge.ObservedState) routerView {
	v := routerView{applied: status.Applied}
	if status.VPP != nil {
		v.vpp = &runOf{status.VPP.Version, status.VPP.PID, status.VPP.BootMS}
	}
	if p == nil {
		return v
	}
	todo, s := p.Plan, p.Snapshot
	v.known, v.links = true, make(map[string]bool)
	v.conflicts, v.quarantined = make(map[intent.Key]string), make(map[quarantine]bool)
	v.drift, v.contested = make(map[intent.Key]string), make(map[intent.Key]string)
	made := madeByUs(todo)
	kept := todo.ShutDown()
	for _, e := range p.Intent.Present {
		if port := s.ByName(e.Access.Interface); port != nil && isShutDown(e, port, kept) {
			made[port.Index] = true // the agent has caused the loss of its link
		}
	}
	for _, name := range todo.MembersShutDown() {
		if member := s.ByName(name); member != nil {
			made[member.Index] = true
		}
	}
	for _, i := range s.Interfaces {
		if !made[i.Index] {
			v.links[i.Name] = i.AdminUp && i.LinkUp
		}
	}
	for key, reason := range todo.Blocked {
		if reason.Status == "conflict" {
			v.conflicts[key] = reason.Message
		}
	}
	for key, differences := range p.Drift {
		v.drift[key] = describeDrift(differences)
	}
	for key, fields := range p.Contested {
		differences := make([]plan.Drift, len(fields))
		for i, c := range fields {
			differences[i] = c.Drift
		}
		v.contested[key] = describeDrift(differences)
	}
	for _, h := range todo.Quarantined {
		if status.Intent == nil {
			break // no intent is stored, so owned ends may still be required
		}
		v.quarantined[quarantine{h.End, h.Interface.Name}] = true
	}
	return v
}

// madeByUs returns the interfaces that the agent created, by index. It omits ports that the agent only
// uses.
func madeByUs(todo *plan.Plan) map[uint32]bool {
	made := make(map[uint32]bool)
	for _, h := range todo.Owned {
		if h.Kind() != "port" {
			made[h.Interface.Index] = true
		}
	}
	return made
}

// eventsBetween returns the events between two views, sorted by subject: VPP, interfaces, ends, the intent.
// An interface that exists in only one of the two views causes no link event.
func eventsBetween(before, after routerView) []eventBody {
	var events []eventBody
	add := func(e eventBody) {
		e.Interface, e.Detail = printableOr(e.Interface), printableOr(e.Detail)
		events = append(events, e)
	}
	changed := before.vpp != nil && after.vpp != nil && *before.vpp != *after.vpp
	if before.vpp != nil && (after.vpp == nil || changed) {
		add(eventBody{Kind: "vpp.lost", Detail: &before.vpp.version})
	}
	if after.vpp != nil && (before.vpp == nil || changed) {
		add(eventBody{Kind: "vpp.connected", Detail: &after.vpp.version})
	}
	if after.known {
		for name, up := range after.links {
			if was, known := before.links[name]; known && was != up {
				add(eventBody{Kind: "interface." + upOrDown(up), Interface: &name})
			}
		}
		// cleared is the kind of event that reports the end of the condition; "" if there is no such event.
		ends := func(kind, cleared string, before, after map[intent.Key]string) {
			for key, text := range after {
				if _, known := before[key]; !known {
					add(eventBody{Kind: kind, VLL: &key.VLL, End: &key.End, Detail: &text})
				}
			}
			for key := range before {
				if _, still := after[key]; !still && cleared != "" {
					add(eventBody{Kind: cleared, VLL: &key.VLL, End: &key.End})
				}
			}
		}
		ends("end.conflict", "end.conflict_cleared", before.conflicts, after.conflicts)
		ends("end.drift", "", before.drift, after.drift)
		ends("end.contested", "end.contested_cleared", before.contested, after.contested)
		ends("end.vlan_rebuilt", "", nil, after.vlans.rebuilt)
		ends("end.vlan_restored", "", nil, after.vlans.restored)
		ends("end.vlan_not_restored", "", nil, after.vlans.notRestored)
		for q := range after.quarantined {
			if !before.quarantined[q] {
				add(eventBody{Kind: "end.quarantined", VLL: &q.end.VLL, End: &q.end.End, Interface: &q.on})
			}
		}
	}
	if after.applied != nil && (before.applied == nil || before.applied.Generation != after.applied.Generation || changed) {
		add(eventBody{Kind: "intent.applied", Generation: &after.applied.Generation})
	}
	slices.SortStableFunc(events, compareEvents)
	return events
}

// describeDrift describes the first five differences and counts the remaining differences, because an event
// has room for only a few.
func describeDrift(differences []plan.Drift) string {
	const most = 5
	var descriptions []string
	for i, d := range differences {
		if i == most {
			descriptions = append(descriptions, fmt.Sprintf("and %d more", len(differences)-most))
			break
		}
		descriptions = append(descriptions, fmt.Sprintf("%s of %s is %q instead of %q", d.Field, d.Object, d.Actual, d.Desired))
	}
	return strings.Join(descriptions, "; ")
}

func upOrDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// subjects has the parts of event kinds before the dot, in the order in which events are sorted.
var subjects = []string{"vpp", "interface", "end", "intent"}

func compareEvents(a, b eventBody) int { return slices.Compare(sortKey(a), sortKey(b)) }

func sortKey(e eventBody) []string {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	subject := slices.IndexFunc(subjects, func(s string) bool { return len(e.Kind) > len(s) && e.Kind[:len(s)] == s })
	if subject == 0 {
		return []string{fmt.Sprint(subject)} // lost, then connected: keep their order
	}
	return []string{fmt.Sprint(subject), text(e.Interface), text(e.VLL), text(e.End), e.Kind}
}

// next returns the view with which the following view has to be compared. This is the view after. If after
// has no observed state, next adds the last known state from v.
func (v routerView) next(after routerView) routerView {
	if !after.known {
		after.links, after.conflicts, after.quarantined = v.links, v.conflicts, v.quarantined
		after.drift, after.contested = v.drift, v.contested
	}
	return after
}

// reportBytes is the largest encoded size of the samples in one report (bytes). The portal accepts 32 MiB. A
// link of 4 Mbit/s transfers a report of reportBytes within the time limit of a request. If a single sample
// is larger, it is sent alone.
const reportBytes = 4 << 20

// composeCounters returns a function that composes a report from the first records, and also returns the
// number of records in the report. All samples of a report are from one run of the agent, and therefore from
// one run of the router's kernel. They are also from one kind of VPP (real or simulated). Together they have
// at most reportBytes.
func composeCounters(now func() time.Time, dropped func() int64) func([]spool.Record) (any, int, error) {
	return func(records []spool.Record) (any, int, error) {
		first, err := unmarshal(records[0].Data)
		if err != nil {
			return nil, 0, err
		}
		sent := now()
		report := countersBody{
			Schema: 1, BootID: first.BootID.String(), SentMS: sent.UnixMilli(), Simulated: first.Simulated,
			Dropped: dropped(), Samples: []sampleBody{sampleOf(first.Sample)},
		}
		if first.KernelBoot != uuid.Nil {
			report.KernelBootID = new(first.KernelBoot.String())
			if first.KernelBoot == kernelBoot() {
				report.SentUptimeMS = new(uptimeAt(sent))
			}
		}
		size := 0
		if len(records) > 1 {
			size = encodedBytes(report.Samples[0])
		}
		for _, record := range records[1:] {
			next, err := unmarshal(record.Data)
			if err != nil || next.BootID != first.BootID || next.Simulated != first.Simulated {
				break // this sample is sent with the next report
			}
			sample := sampleOf(next.Sample)
			if size += encodedBytes(sample); size > reportBytes {
				break
			}
			report.Samples = append(report.Samples, sample)
		}
		return report, len(report.Samples), nil
	}
}

func encodedBytes(sample sampleBody) int {
	data, err := json.Marshal(sample)
	if err != nil {
		return reportBytes + 1 // so that the report contains no further sample
	}
	return len(data)
}

// storedEvent is an event with the run of the agent that observed it.
type storedEvent struct {
	BootID string    `json:"boot_id"`
	Event  eventBody `json:"event"`
}

// eventRecorder compares each view of the router with the previous view, and stores the differences as
// events.
type eventRecorder struct {
	bootID uuid.UUID
	spool  *spool.Spool
	seq    int64
	last   routerView
}

// record stores the differences between the last view and v as events of the given time. If record returns an
// error, some of these events are lost. The spool counts them, and the portal notices the gap in their
// sequence numbers.
func (r *eventRecorder) record(v routerView, at time.Time) error {
	var failed []error
	for _, event := range eventsBetween(r.last, v) {
		r.seq++
		event.Seq, event.AtMS = r.seq, at.UnixMilli()
		data, err := json.Marshal(storedEvent{r.bootID.String(), event})
		if err == nil {
			err = r.spool.Append(data)
		}
		failed = append(failed, err)
	}
	r.last = r.last.next(v)
	return errors.Join(failed...)
}

// composeEvents returns a function that composes a report from the first records, and also returns the number
// of records in the report. All events of a report are from one run of the agent.
func composeEvents(now func() time.Time) func([]spool.Record) (any, int, error) {
	return func(records []spool.Record) (any, int, error) {
		report := eventsBody{Schema: 1, SentMS: now().UnixMilli()}
		for i, record := range records {
			var s storedEvent
			err := json.Unmarshal(record.Data, &s)
			if i == 0 {
				if err != nil {
					return nil, 0, fmt.Errorf("report: %w", err)
				}
				report.BootID = s.BootID
			}
			if err != nil || s.BootID != report.BootID {
				break // this event is sent with the next report
			}
			report.Events = append(report.Events, s.Event)
		}
		return report, len(report.Events), nil
	}
}

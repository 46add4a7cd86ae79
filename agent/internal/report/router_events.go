package report

import (
	"fmt"
	"slices"
	"strings"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/plan"
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

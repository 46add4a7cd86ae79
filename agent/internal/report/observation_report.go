package report

import (
	"cmp"
	"slices"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/tunnel"
)

// fill adds the observed state of VPP, the routes to the watched addresses, and the load of the interfaces.
func (b *observedBody) fill(
	p *converge.ObservedState, neverWatch bool, paths []pathwatch.Watched, watched []observe.Destination,
	reachable map[observe.Destination]bool, loads Loads, losses map[intent.Key]VLANLoss,
) {
	todo, s := p.Plan, p.Snapshot
	b.ObservationNumber = p.ObservationNumber
	for _, kind := range tunnel.Kinds {
		if s.Supported[observe.Capability(kind.Encapsulation)] {
			b.Encapsulations = append(b.Encapsulations, string(kind.Encapsulation))
		}
	}
	b.Policing, b.ActivationTests, b.GREKeys = string(s.Policing.Reach()), s.Supported[observe.CanTest], s.Supported[observe.CanGREKeys]
	b.Probes, b.UnderlayTables = b.ActivationTests, true // supported by this agent
	b.PathWatch, b.Watching = s.Supported[observe.CanWatch] && !neverWatch, watchingOf(p.Intent)
	states := make(map[intent.Path]*endPathBody, len(paths))
	for _, path := range paths {
		b.Paths = append(b.Paths, pathOf(path))
		states[path.Path] = &endPathBody{string(path.State), path.Since.UnixMilli()}
	}
	made := madeByUs(todo)
	for _, i := range s.Interfaces {
		if !made[i.Index] && nameable(i.Name) {
			body := interfaceOf(i, s.ByIndex(i.Sup))
			if load, known := loads.Of(s.Boot.MS, i.Index, i.Name); known {
				body.Load = &loadBody{RxBPS: load.RxBPS, TxBPS: load.TxBPS}
				if i.SpeedBPS != 0 {
					body.Load.SpeedBPS = &i.SpeedBPS
				}
			}
			if linux, paired := s.LCP[i.Index]; paired {
				body.LinuxCP = printableOr(&linux)
			}
			b.Interfaces = append(b.Interfaces, body)
		}
	}
	b.Circuits = circuitsOf(s, todo)
	for _, to := range watched {
		b.Routes = append(b.Routes, routeBody{to.Address.String(), reachable[to]})
	}
	drift := make(map[intent.Key][]plan.Drift)
	for _, op := range todo.Ops {
		drift[op.End] = append(drift[op.End], driftOf(op.Drift))
	}
	kept := todo.ShutDown()
	for _, e := range p.Intent.Present {
		end := endBody{Key: e.Key, Revision: e.Revision, Policed: todo.Policed[e.Key], Drift: drift[e.Key]}
		end.InSync = end.Drift == nil && todo.Blocked[e.Key] == nil
		if end.Drift == nil {
			end.Drift = []plan.Drift{}
			if reason := todo.Blocked[e.Key]; reason != nil && reason.Drift != nil {
				end.Drift = append(end.Drift, driftOf(*reason.Drift))
			}
		}
		end.Contested = contestedOf(p.Contested[e.Key])
		if loss, known := losses[e.Key]; known {
			end.VLANLoss = &vlanLossBody{string(loss.State), loss.Since.UnixMilli(), printable(loss.Detail)}
		}
		if port := s.ByName(e.Access.Interface); port != nil {
			end.LinkUp = port.AdminUp && port.LinkUp
			end.ShutDown = isShutDown(e, port, kept)
		}
		if e.Tunnel.Encapsulation != intent.L2XC {
			near := s.ByAddress(e.Tunnel.Table, e.Tunnel.Local) // without the local address no frames of the far router arrive
			end.Reachable = new(near != nil && near.AdminUp && reachable[observe.Destination{Table: e.Tunnel.Table, Address: e.Tunnel.Remote}])
			path, _ := e.Tunnel.Path()
			end.Path = states[path]
		}
		b.Ends = append(b.Ends, end)
	}
}

// isShutDown reports whether the agent keeps the port shut down because the far end has no link. The link state of
// such a port has no meaning. The result stays true until the port is up again (plan.Plan.ShutDown). If it
// became false earlier, the portal would treat the missing link as a failure and have the far end's port set
// down.
func isShutDown(e intent.End, port *observe.Interface, kept map[intent.Key]string) bool {
	return !port.AdminUp && (e.UNILinkDown || kept[e.Key] == port.Name)
}

func watchingOf(in *intent.Intent) *watchBody {
	if in.Watch == (intent.Watch{}) {
		return nil
	}
	return &watchBody{in.Watch.IntervalMS, in.Watch.Multiplier}
}

func pathOf(w pathwatch.Watched) pathBody {
	body := pathBody{
		Local: w.Local.String(), Remote: w.Remote.String(), State: string(w.State), SinceMS: w.Since.UnixMilli(), Foreign: w.Foreign,
	}
	if w.Detail != "" {
		body.Detail = printableOr(&w.Detail)
	}
	return body
}

// interfaceOf returns the body of an interface in a report. port is the port of a sub-interface, or nil if
// that port is unknown. For any other interface, port is the interface itself.
func interfaceOf(i, port *observe.Interface) interfaceBody {
	body := interfaceBody{
		Name: i.Name, SwIfIndex: i.Index, AdminUp: i.AdminUp, LinkUp: i.LinkUp, Addresses: []string{}, Tables: i.Tables, IPMTU: ipMTU(i),
	}
	if i.IsSub() && port != nil && nameable(port.Name) {
		body.Parent, body.Frames = &port.Name, framesOf(i.Sub.Frames())
		if body.IPMTU == nil {
			body.IPMTU = inheritedIPMTU(port)
		}
	}
	for _, prefix := range i.Addresses {
		body.Addresses = append(body.Addresses, prefix.String())
	}
	if i.Tag != "" {
		body.Tag = printableOr(&i.Tag)
	}
	return body
}

func driftOf(d plan.Drift) plan.Drift {
	return plan.Drift{Object: printable(d.Object), Field: printable(d.Field), Desired: printable(d.Desired), Actual: printable(d.Actual)}
}

func contestedOf(fields []converge.Contested) []contestedBody {
	bodies := []contestedBody{}
	for _, c := range fields {
		bodies = append(bodies, contestedBody{driftOf(c.Drift), c.Since.UnixMilli(), c.Repairs})
	}
	return bodies
}

// ipMTU returns the smallest of the L3, IPv4 and IPv6 MTUs that are set (bytes), or nil if none is set.
func ipMTU(i *observe.Interface) *uint32 {
	var least *uint32
	for _, mtu := range []uint32{i.L3MTU, i.IP4MTU, i.IP6MTU} {
		if mtu != 0 && (least == nil || mtu < *least) {
			least = &mtu
		}
	}
	return least
}

// mtuUnset is the MTU (bytes) that VPP assumes for an interface without an MTU, such as a new sub-interface
// (vnet_sw_interface_get_mtu in vnet/interface_funcs.h).
const mtuUnset = 9000

// inheritedIPMTU returns the largest IP packet that a sub-interface without its own MTU can send (bytes).
// VPP's IP layer ignores the port's MTU and allows packets of mtuUnset bytes, but the port drops packets that
// are larger than its own MTU.
func inheritedIPMTU(port *observe.Interface) *uint32 {
	mtu := uint32(mtuUnset)
	if least := ipMTU(port); least != nil {
		mtu = min(mtu, *least)
	}
	return &mtu
}

// viewOf returns the interfaces to count, from the observed state.
func viewOf(p *converge.ObservedState) View {
	view := View{BootMS: p.Snapshot.Boot.MS, Accesses: accesses(p), Subs: make(map[uint32][]Port)}
	made := madeByUs(p.Plan)
	for _, i := range p.Snapshot.Interfaces {
		if i.IsSub() {
			view.Subs[i.Sup] = append(view.Subs[i.Sup], Port{i.Index, i.Name})
		}
		if !made[i.Index] && (!i.IsSub() || len(i.Addresses) > 0) && nameable(i.Name) {
			view.Ports = append(view.Ports, Port{i.Index, i.Name})
		}
	}
	slices.SortFunc(view.Ports, func(a, b Port) int { return cmp.Compare(a.Index, b.Index) })
	return view
}

// accesses returns, for every present end, the interface on the customer's side and the tunnel. While an end
// is being moved, it may have two interfaces on the customer's side, and accesses omits the end. If the end
// has two tunnels, accesses omits the tunnel.
func accesses(p *converge.ObservedState) []Access {
	found, tunnels := make(map[intent.Key][]Access), make(map[intent.Key][]Tunnel)
	for _, h := range p.Plan.Owned {
		if h.Tunnel != nil {
			tunnels[h.End] = append(tunnels[h.End], Tunnel{h.Interface.Index, h.Interface.Name, p.Made[h.Interface.Index]})
		} else {
			found[h.End] = append(found[h.End], Access{
				Key: h.End, BootMS: p.Snapshot.Boot.MS, Index: h.Interface.Index, Name: h.Interface.Name,
				Port: portOf(h.Interface, p.Snapshot), Made: p.Made[h.Interface.Index], Policer: policerOf(h.End, p),
			})
		}
	}
	var all []Access
	for _, e := range p.Intent.Present {
		if candidates := found[e.Key]; len(candidates) == 1 {
			if behind := tunnels[e.Key]; len(behind) == 1 {
				candidates[0].Tunnel = behind[0]
			}
			if port := candidates[0].Port; port != (Port{}) {
				candidates[0].VLAN = packettrace.VLAN{Port: port.Name, Tagging: e.Access.Tagging, Outer: e.Access.Outer, Inner: e.Access.Inner}
			}
			all = append(all, candidates[0])
		}
	}
	return all
}

func portOf(access *observe.Interface, s *observe.Snapshot) Port {
	if !access.IsSub() {
		return Port{}
	}
	port := s.ByIndex(access.Sup)
	if port == nil {
		return Port{}
	}
	return Port{port.Index, port.Name}
}

// policerOf returns the end's policer if it enforces the intended profile. Otherwise it returns a zero
// Policer, because the policer's counters have no meaning for the customer.
func policerOf(end intent.Key, p *converge.ObservedState) Policer {
	policer := p.Snapshot.Policers[ownership.PolicerName(end)]
	if !p.Plan.Policed[end] || policer == nil || policer.Index == observe.NoIndex {
		return Policer{}
	}
	return Policer{true, policer.Index, policer.Config}
}

// EndState is the state of an end in the last observation of VPP.
type EndState struct {
	Key            intent.Key
	InSync, LinkUp bool
	ShutDown       bool  // the port is down because of the far end's link
	PathUp         *bool // nil if the tunnel's path is not watched
}

// Ends returns the states of all ends. It returns none while VPP cannot be read.
func (r *Reporter) Ends() []EndState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ends
}

// noteEnds replaces the states that Ends returns.
func (r *Reporter) noteEnds(bodies []endBody) {
	ends := make([]EndState, 0, len(bodies))
	for _, b := range bodies {
		state := EndState{Key: b.Key, InSync: b.InSync, LinkUp: b.LinkUp, ShutDown: b.ShutDown}
		if b.Path != nil {
			state.PathUp = new(b.Path.State == string(pathwatch.Up))
		}
		ends = append(ends, state)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = ends
}

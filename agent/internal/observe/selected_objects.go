package observe

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/policer"

	"longline.dev/agent/internal/tunnel"
	"longline.dev/agent/internal/vpp"
)

// NamedByIndex lists objects that messages name by index. The agent reads these objects before it sends the
// messages, because VPP reuses indices.
type NamedByIndex struct {
	Interfaces []uint32
	Tunnels    []*Tunnel // the keys of these tunnels are read in addition to the interfaces
	Policers   []uint32
	Tables     []uint32 // classify tables
}

// Len returns the number of messages that read the objects.
func (n *NamedByIndex) Len() int {
	return len(n.Interfaces) + len(n.Tunnels) + len(n.Policers) + len(n.Tables)
}

// AddInterface adds an interface, unless it is listed already.
func (n *NamedByIndex) AddInterface(index uint32) (added bool) {
	if slices.Contains(n.Interfaces, index) {
		return false
	}
	n.Interfaces = append(n.Interfaces, index)
	return true
}

// ByIndex returns a snapshot of only the objects that have these indices now. VPP does not stop its workers
// while ByIndex reads interfaces.
func ByIndex(ctx context.Context, session Session, named *NamedByIndex) (*Snapshot, error) {
	s := &Snapshot{Policers: make(map[string]*Policer), Classifiers: noClassifiers()}
	var dumps []api.Message
	for _, index := range named.Interfaces {
		dumps = append(dumps, &interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
	}
	for _, t := range named.Tunnels {
		dumps = append(dumps, t.Kind().Dump(session.Has, interface_types.InterfaceIndex(t.Index)))
	}
	first := len(dumps)
	for _, index := range named.Policers {
		dumps = append(dumps, &policer.PolicerDumpV2{PolicerIndex: index})
	}
	for _, index := range named.Tables {
		dumps = append(dumps, &classify.ClassifyTableInfo{TableID: index})
	}
	err := session.DumpEach(ctx, dumps, func(at int, answer api.Message) {
		if m, ok := answer.(*classify.ClassifyTableInfoReply); ok {
			if t := tableOf(m); t != nil {
				s.Tables[t.Index] = t
			}
			return
		}
		if m, ok := answer.(*policer.PolicerDetails); ok {
			s.Policers[vpp.Text(m.Name)] = &Policer{Index: named.Policers[at-first], Config: configOf(m)}
			return
		}
		s.add(answer)
	})
	if err != nil {
		return nil, fmt.Errorf("observe objects by index: %w", err)
	}
	return s.Index(), nil
}

// AllInterfaces returns a snapshot of only the interfaces that exist now. If keys is true, AllInterfaces also
// reads the tunnels, and VPP stops its workers once for each kind of tunnel.
func AllInterfaces(ctx context.Context, session Session, keys bool) (*Snapshot, error) {
	s := new(Snapshot)
	err := dumpInterfaces(ctx, session, s.add)
	if err == nil && keys {
		err = s.dumpTunnels(ctx, session)
	}
	if err != nil {
		return nil, fmt.Errorf("observe all interfaces: %w", err)
	}
	return s.Index(), nil
}

// fewPorts is the largest number of ports that are requested by name. VPP searches all its interfaces for
// each name.
const fewPorts = 8

// Ports reads these ports and their sub-interfaces again, and returns a snapshot of only these interfaces.
// old must have the ports' names. The agent needs this snapshot before it creates a sub-interface. VPP does
// not stop its workers for this. If ports is empty, Ports sends no request.
func Ports(ctx context.Context, session Session, old *Snapshot, ports []uint32) (*Snapshot, error) {
	s := &Snapshot{}
	if len(ports) == 0 {
		return s.Index(), nil
	}
	requested := make(map[uint32]bool, len(ports))
	var dumps []api.Message
	for _, index := range ports {
		requested[index] = true
		if port := old.ByIndex(index); port != nil && len(ports) <= fewPorts {
			dumps = append(dumps, &interfaces.SwInterfaceDump{SwIfIndex: anyInterface, NameFilterValid: true, NameFilter: port.Name})
		}
	}
	if len(dumps) < len(requested) {
		dumps = []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: anyInterface}}
	}
	added := make(map[uint32]bool) // VPP also reports interfaces whose names contain the requested name, so it may report an interface twice
	err := session.Dump(ctx, dumps, func(msg api.Message) {
		if m, ok := msg.(*interfaces.SwInterfaceDetails); ok && requested[m.SupSwIfIndex] && !added[uint32(m.SwIfIndex)] {
			added[uint32(m.SwIfIndex)] = true
			s.Interfaces = append(s.Interfaces, interfaceOf(m))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("observe ports: %w", err)
	}
	return s.Index(), nil
}

// OnlyPorts returns the result that Ports would have if no interface has been created or deleted since s was
// read. It does not query VPP.
func (s *Snapshot) OnlyPorts(ports []uint32) *Snapshot {
	only := &Snapshot{}
	for _, index := range ports {
		if port := s.ByIndex(index); port != nil {
			only.Interfaces = append(append(only.Interfaces, port), s.Subs(index)...)
		}
	}
	return only.Index()
}

// VPP answers its API on its main thread, which also runs BFD, LACP and ARP. A dump of all objects blocks
// that thread until the last detail is queued. The dump takes longer than writing the details alone would
// take: once the socket is full, VPP tries to write all waiting messages again with each further detail. So
// the agent requests a long dump in portions that fit into the socket.
const (
	// wholeInterfaces is the largest number of interface indices for which one dump of all interfaces is
	// requested. A dump of the interfaces of 1,000 lines blocks the main thread for 3 ms. Requests for single
	// interfaces take VPP and the agent twice as long. VPP does not stop its workers for the dump or for
	// these requests.
	wholeInterfaces = 2048
	// wholeTunnels is the largest number of tunnels for which one dump of all tunnels is requested. VPP stops
	// its workers for this dump, and also for the dump of the cross-connects. Lines have twice as many
	// cross-connects as tunnels, and cross-connects cannot be read in portions.
	wholeTunnels = 1024
	// wholePolicers is the largest number of known policers for which one dump of all policers is requested. VPP
	// stops its workers for the dump.
	wholePolicers = 256
	// portion is the number of requests that are sent together. portionsAtATime is the number of portions
	// in progress.
	portion         = 64
	portionsAtATime = 2
	// portionTries is the largest number of attempts to read all interfaces in portions. An attempt fails if an
	// interface is created or deleted meanwhile. After the last attempt, one dump of all interfaces is
	// requested.
	portionTries = 3
)

// dumpInterfaces reads all interfaces, and calls the function each with the details of every interface. As
// with a single sw_interface_dump, the interfaces are those that existed at one moment.
func dumpInterfaces(ctx context.Context, session Session, each func(api.Message)) error {
	indexed, can := session.(interface {
		Interfaces() (indices int, epoch int64, err error)
	})
	for range portionTries {
		if !can {
			break
		}
		indices, epoch, err := indexed.Interfaces()
		if err != nil || indices <= wholeInterfaces {
			break
		}
		// The index of local0 means all interfaces in a dump, so local0 is requested by its name.
		requests := []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: anyInterface, NameFilterValid: true, NameFilter: "local0"}}
		for index := 1; index < indices; index++ {
			requests = append(requests, &interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
		}
		found, err := inPortions(ctx, session, requests)
		if err != nil {
			return err
		}
		if _, now, err := indexed.Interfaces(); err != nil || now != epoch {
			continue
		}
		added := make(map[interface_types.InterfaceIndex]bool, len(found))
		for _, msg := range found {
			if m, is := msg.(*interfaces.SwInterfaceDetails); is && !added[m.SwIfIndex] { // VPP also reports interfaces whose names contain the requested name
				added[m.SwIfIndex] = true
				each(m)
			}
		}
		return nil
	}
	return session.Dump(ctx, []api.Message{&interfaces.SwInterfaceDump{SwIfIndex: anyInterface}}, each)
}

// inPortions sends the requests in portions and returns all answers, in the order of the requests.
func inPortions(ctx context.Context, session Session, requests []api.Message) ([]api.Message, error) {
	portions := slices.Collect(slices.Chunk(requests, portion))
	answers, errs := make([][]api.Message, len(portions)), make([]error, len(portions))
	next := make(chan int, len(portions))
	for n := range portions {
		next <- n
	}
	close(next)
	var senders sync.WaitGroup
	for range min(portionsAtATime, len(portions)) {
		senders.Go(func() {
			for n := range next {
				if errs[n] = session.Dump(ctx, portions[n], func(msg api.Message) { answers[n] = append(answers[n], msg) }); errs[n] != nil {
					return
				}
			}
		})
	}
	senders.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("in portions: %w", err)
		}
	}
	return slices.Concat(answers...), nil
}

// dumpTunnels adds all tunnels to the snapshot. If there are many tunnels, it requests them one by one. VPP
// then stops its workers more often, but never for long. The snapshot must already have the interfaces.
func (s *Snapshot) dumpTunnels(ctx context.Context, session Session) error {
	var tunnels []*Interface
	for _, i := range s.Interfaces {
		if tunnel.OfDevice(i.Device) != nil {
			tunnels = append(tunnels, i)
		}
	}
	if len(tunnels) <= wholeTunnels {
		return session.Dump(ctx, tunnel.Dumps(session.Has, anyInterface), s.add)
	}
	requests := make([]api.Message, 0, len(tunnels))
	for _, i := range tunnels {
		dump := tunnel.OfDevice(i.Device).Dump(session.Has, interface_types.InterfaceIndex(i.Index))
		if session.Has(dump) {
			requests = append(requests, dump)
		}
	}
	found, err := inPortions(ctx, session, requests)
	for _, msg := range found {
		s.add(msg)
	}
	return err
}

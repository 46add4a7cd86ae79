package observe

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/tunnel"
)

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

package observe

import (
	"context"
	"maps"
	"testing"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/vpp"
)

// placed is a session with a VPP whose ports have these queues, each with its worker.
type placed struct {
	Session
	workers int
	queues  map[uint32][]uint32
}

func (p placed) Info() vpp.Info       { return vpp.Info{Workers: p.workers} }
func (p placed) Has(api.Message) bool { return true }

func (p placed) Dump(_ context.Context, _ []api.Message, each func(api.Message)) error {
	for port, workers := range p.queues {
		for queue, worker := range workers {
			each(&interfaces.SwInterfaceRxPlacementDetails{
				SwIfIndex: interface_types.InterfaceIndex(port), QueueID: uint32(queue), WorkerID: worker,
			})
		}
	}
	return nil
}

// TestBondHasOneWorkerIfItsMembersShareIt: a bond has no own queue.
func TestBondHasOneWorkerIfItsMembersShareIt(t *testing.T) {
	for name, c := range map[string]struct {
		members []uint32
		want    bool
	}{
		"members of one worker": {[]uint32{1, 2}, true}, "members of two workers": {[]uint32{1, 3}, false},
		"a member of two workers": {[]uint32{1, 4}, false}, "a member that VPP says nothing about": {[]uint32{1, 5}, false},
		"one member": {[]uint32{3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Snapshot{Classifiers: noClassifiers(), Bonds: Bonds{Members: map[uint32][]uint32{9: c.members}}}
			session := placed{workers: 2, queues: map[uint32][]uint32{1: {1}, 2: {1, 1}, 3: {2}, 4: {1, 2}}}
			if err := s.takeWorkers(t.Context(), session); err != nil {
				t.Fatal(err)
			}
			if got := s.ReceivedByOne(9); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPortHasOneWorkerIfItsQueuesShareIt(t *testing.T) {
	const one, oneOfMany, several, backAgain, none = 1, 2, 3, 4, 5
	queues := map[uint32][]uint32{one: {1}, oneOfMany: {2, 2, 2}, several: {1, 2}, backAgain: {1, 2, 1}}
	for workers, want := range map[int]map[uint32]bool{
		0: {one: true, oneOfMany: true, several: true, backAgain: true, none: true},
		1: {one: true, oneOfMany: true, several: true, backAgain: true, none: true},
		2: {one: true, oneOfMany: true, several: false, backAgain: false, none: false},
	} {
		s := &Snapshot{Classifiers: noClassifiers()}
		if err := s.takeWorkers(t.Context(), placed{workers: workers, queues: queues}); err != nil {
			t.Fatal(err)
		}
		got := make(map[uint32]bool)
		for port := range want {
			got[port] = s.ReceivedByOne(port)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%d workers: got %v, want %v", workers, got, want)
		}
	}
}

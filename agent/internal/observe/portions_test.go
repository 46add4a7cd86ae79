package observe

import (
	"context"
	"sync/atomic"
	"testing"

	"go.fd.io/govpp/api"
)

// dumping counts the requests of dumps, which find nothing. Portions are dumped simultaneously.
type dumping struct {
	Session
	lacks    map[string]bool // names of messages that this VPP does not have
	requests atomic.Int32
}

func (d *dumping) Has(m api.Message) bool { return !d.lacks[m.GetMessageName()] }

func (d *dumping) Dump(_ context.Context, requests []api.Message, _ func(api.Message)) error {
	d.requests.Add(int32(len(requests)))
	return nil
}

func TestAFewTunnelsAreDumpedWithoutARequestForEach(t *testing.T) {
	s := &Snapshot{}
	for index := range uint32(wholeTunnels) {
		s.Interfaces = append(s.Interfaces, &Interface{Index: index, Device: "VXLAN"})
	}
	session := &dumping{}
	allocated := testing.AllocsPerRun(1, func() {
		session.requests.Store(0)
		if err := s.dumpTunnels(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	})
	if got := session.requests.Load(); got != 3 {
		t.Errorf("%d requests", got)
	}
	if allocated > 100 {
		t.Errorf("%.0f allocations for %d tunnels", allocated, len(s.Interfaces))
	}
}

func TestManyTunnelsAreRequestedByTheirKind(t *testing.T) {
	s := &Snapshot{}
	for index := range uint32(wholeTunnels + 1) {
		s.Interfaces = append(s.Interfaces, &Interface{Index: 2 * index, Device: "VXLAN"}, &Interface{Index: 2*index + 1, Device: "Loopback"})
	}
	// A VPP that cannot list GENEVE tunnels is not requested to.
	s.Interfaces = append(s.Interfaces, &Interface{Index: 9000, Device: "GRE tunnel device"}, &Interface{Index: 9001, Device: "GENEVE"})
	session := &dumping{lacks: map[string]bool{"geneve_tunnel_dump": true}}
	if err := s.dumpTunnels(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	if got := session.requests.Load(); got != wholeTunnels+2 {
		t.Errorf("%d requests, want %d", got, wholeTunnels+2)
	}
}

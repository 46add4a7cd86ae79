// Package vppsim is a stand-in for VPP on real Unix sockets, for machines without VPP.
//
// It serves the binary API socket (framing as in VPP's vlibmemory/socket_api.c) and the stats segment
// socket (shared memory with the layout of VPP's vlib/stats). The unmodified agent, or any other govpp
// client, can therefore connect to it as to a VPP 25.10. It keeps the same state as VPP and has the same
// peculiarities: return codes, uniqueness keys, defaults after creation, reuse of interface indices. It
// forwards only frames of packet generators and pings. Access interfaces with a complete path count
// synthetic traffic.
//
// The contract suite in internal/vppcontract runs the same cases on this package and on a real VPP. If the
// results differ, the error is in this package.
package vppsim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	countEvery     = 200 * time.Millisecond
	heartbeatEvery = time.Second
)

var errStopped = errors.New("vppsim: not running")

// Sim is a running stand-in for VPP. Several goroutines may call its methods.
type Sim struct {
	config  Config
	folder  string // the folder that Stop removes; "" if the caller chose the sockets
	cancel  context.CancelFunc
	ticking sync.WaitGroup
	once    sync.Once

	mu  sync.Mutex
	vpp *vpp
}

// Start starts a stand-in for VPP. It runs until ctx is done or Stop is called.
func Start(ctx context.Context, config Config) (*Sim, error) {
	config.fillDefaults()
	s := &Sim{config: config}
	if config.APISocket == "" || config.StatsSocket == "" {
		folder, err := os.MkdirTemp("", "vppsim")
		if err != nil {
			return nil, err
		}
		s.folder = folder
		s.config.APISocket = filepath.Join(folder, "api.sock")
		s.config.StatsSocket = filepath.Join(folder, "stats.sock")
		s.config.CLISocket = filepath.Join(folder, "cli.sock")
	}
	v, err := boot(s.config)
	if err != nil {
		os.RemoveAll(s.folder)
		return nil, err
	}
	s.vpp = v
	ticks, cancel := context.WithCancel(ctx)
	s.cancel = cancel
	s.ticking.Go(func() { s.tick(ticks) })
	context.AfterFunc(ctx, s.Stop)
	return s, nil
}

// APISocket returns the path of the binary API socket.
func (s *Sim) APISocket() string { return s.config.APISocket }

// StatsSocket returns the path of the stats segment socket.
func (s *Sim) StatsSocket() string { return s.config.StatsSocket }

// CLISocket returns the path of the CLI socket.
func (s *Sim) CLISocket() string { return s.config.CLISocket }

// Stop ends the stand-in and removes its sockets. A second call does nothing.
func (s *Sim) Stop() { s.once.Do(s.stop) }

func (s *Sim) stop() {
	s.cancel()
	s.ticking.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vpp != nil {
		s.vpp.halt()
		s.vpp = nil
	}
	os.Remove(s.config.APISocket)
	os.Remove(s.config.StatsSocket)
	if s.config.CLISocket != "" {
		os.Remove(s.config.CLISocket)
	}
	if s.folder != "" {
		os.RemoveAll(s.folder)
	}
}

// Restart simulates a crash and a new start. All connections are closed and all configuration is lost.
// Indices start from the beginning, and the boot time is new.
func (s *Sim) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vpp == nil {
		return errStopped
	}
	s.vpp.halt()
	s.vpp = nil
	v, err := boot(s.config)
	if err != nil {
		return err
	}
	s.vpp = v
	return nil
}

// Busy keeps the main thread busy until the caller calls done. Meanwhile, API and stats socket do not
// respond and the heartbeat stops. The workers continue to forward and to count.
func (s *Sim) Busy() (done func(), err error) {
	s.mu.Lock()
	v := s.vpp
	s.mu.Unlock()
	if v == nil {
		return nil, errStopped
	}
	done, alive := v.occupy()
	if !alive {
		return nil, errStopped
	}
	return done, nil
}

// Count updates the counters up to the present time of the clock. A ticker also does this. Tests that set the
// clock have to call Count.
func (s *Sim) Count() {
	s.inspect(func(v *vpp) error { v.count(); return nil })
}

func (s *Sim) tick(ctx context.Context) {
	count, heartbeat, bfd := time.NewTicker(countEvery), time.NewTicker(heartbeatEvery), time.NewTicker(bfdEvery)
	defer count.Stop()
	defer bfd.Stop()
	defer heartbeat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-count.C:
			s.Count()
		case <-bfd.C:
			s.inspect(func(v *vpp) error {
				if len(v.main) == 0 { // BFD runs on the main thread, so it stops while that is busy
					v.bfdTick(time.Now())
				}
				return nil
			})
		case <-heartbeat.C:
			s.inspect(func(v *vpp) error {
				if !v.hangs() && len(v.main) == 0 {
					v.segment.beat(s.config.Clock())
				}
				return nil
			})
		}
	}
}

// The methods below show the state of interfaces to tests. The API shows the same state, except for the
// result of Forwarding.

// Forwarding returns nil if frames of the access interface with this name are forwarded in both
// directions. Otherwise it returns the reason.
func (s *Sim) Forwarding(name string) error {
	return s.inspect(func(v *vpp) error {
		i := v.named(name)
		if i == nil {
			return fmt.Errorf("%s does not exist", name)
		}
		if _, ok := v.whole(i, v.fib()); ok {
			return nil
		}
		far := v.connected(i)
		switch {
		case far == nil:
			return fmt.Errorf("%s is cross-connected with nothing", name)
		case v.connected(far) != i:
			return fmt.Errorf("%s is not cross-connected back to %s", far.name, name)
		case !v.receives(i) || !v.receives(far):
			return fmt.Errorf("%s: a refused sub-interface with the same tags took its frames", name)
		case !v.carries(i) || !v.carries(far):
			return fmt.Errorf("%s or %s is down", name, far.name)
		}
		return fmt.Errorf("%s drops: its far end has no route, or its local address is missing", far.name)
	})
}

// Interfaces returns the names of all interfaces in the order of their indices. The first is local0.
func (s *Sim) Interfaces() []string {
	var names []string
	s.inspect(func(v *vpp) error {
		for _, i := range v.interfaces.all() {
			names = append(names, i.name)
		}
		return nil
	})
	return names
}

// SetCarrier plugs in or unplugs the cable of a port.
func (s *Sim) SetCarrier(name string, in bool) error {
	return s.inspect(func(v *vpp) error {
		i := v.named(name)
		if i == nil || i.isSub() {
			return fmt.Errorf("%s is not a port", name)
		}
		i.carrier = in
		if up := in && i.adminUp; up != i.linkUp {
			i.linkUp = up
			v.announce(i, false)
		}
		return nil
	})
}

// inspect calls the function at with the running VPP. The VPP is locked during the call.
func (s *Sim) inspect(at func(*vpp) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vpp == nil {
		return errStopped
	}
	s.vpp.mu.Lock()
	defer s.vpp.mu.Unlock()
	return at(s.vpp)
}

package vppsim

import (
	"cmp"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"go.fd.io/govpp/binapi/l2"
)

// vpp is one run of VPP, from start to crash. Like VPP's main thread, it handles one request at a time. mu
// protects all fields below mu.
type vpp struct {
	config Config
	table  *messageTable
	pid    uint32

	listeners []net.Listener
	segment   *segment
	running   sync.WaitGroup

	// main contains a token while the main thread is busy with a request or a new client, or because of
	// Sim.Busy. Acquire the token before mu.
	main   chan struct{}
	halted chan struct{}

	mu         sync.Mutex
	stopped    bool
	clients    map[*client]bool
	watchers   map[*client]uint32 // registrations with want_interface_events: client -> PID in the request
	lastClient uint32
	errno      syscall.Errno    // the main thread's errno
	overlooked map[*client]bool // clients that have ended and whose end VPP has not noticed
	turned     *sync.Cond       // signals changes of errno and of stopped

	interfaces  pool[iface] // by sw_if_index
	loopbacks   map[uint32]bool
	subs        map[subKey]*iface
	vlans       map[vlanKey]*iface    // the VLAN tables of the ports: the interface that frames with these tags belong to
	rewrites    map[uint32]tagRewrite // by sw_if_index
	vxlans      *tunnels
	geneves     *tunnels
	gres        *tunnels
	bridges     map[uint32]*l2.BridgeDomainAddDelV2 // the settings by ID
	tables      [2]map[uint32]bool                  // numbers of the IPv4 and IPv6 tables, in addition to 0
	policers    policers
	classifiers classifiers
	routes      []Route
	counted     time.Time         // traffic has been counted up to this time
	generators  map[uint32]*iface // the packet generators' interfaces by ID
	streams     []*stream         // the streams of packet generators
	tracer      tracer
	underlay    *underlay // frames are lost if it has no folder
	bfd         bfdSessions
	echoes      map[int]chan int // for each waiting ping, by its ID: the sequence numbers of replies
	lastEcho    int
}

// boot starts a run with fresh indices, fresh sockets and the configured ports.
func boot(config Config) (*vpp, error) {
	v := &vpp{
		config:      config,
		main:        make(chan struct{}, 1),
		halted:      make(chan struct{}),
		table:       newMessageTable(config.absentMessages()),
		pid:         rand.Uint32N(1<<22) + 2,
		clients:     map[*client]bool{},
		overlooked:  map[*client]bool{},
		watchers:    map[*client]uint32{},
		loopbacks:   map[uint32]bool{},
		subs:        map[subKey]*iface{},
		vlans:       map[vlanKey]*iface{},
		rewrites:    map[uint32]tagRewrite{},
		vxlans:      newTunnels(vxlanKind),
		geneves:     newTunnels(geneveKind),
		gres:        newTunnels(greKind),
		bridges:     map[uint32]*l2.BridgeDomainAddDelV2{},
		tables:      [2]map[uint32]bool{{}, {}},
		policers:    policers{byName: map[string]uint32{}, applied: map[uint32]*applied{}},
		classifiers: classifiers{bound: map[uint32]uint32{}, works: map[uint32]bool{}},
		routes:      append([]Route(nil), config.Routes...),
		counted:     config.Clock(),
		generators:  map[uint32]*iface{},
		bfd:         bfdSessions{byKey: map[bfdKey]*bfdSession{}, watchers: map[*client]bool{}},
		echoes:      map[int]chan int{},
	}
	v.turned = sync.NewCond(&v.mu)
	segment, err := newSegment(v.counted, cmp.Or(config.StatsSegment, DefaultStatsSegment), config.from(26, 2))
	if err != nil {
		return nil, err
	}
	v.segment = segment
	if err := v.open(); err != nil {
		v.close()
		segment.close()
		return nil, err
	}
	return v, nil
}

// open creates the ports and the sockets, and starts to serve the sockets.
func (v *vpp) open() (err error) {
	if v.underlay, err = openUnderlay(v.config.Underlay); err != nil {
		return err
	}
	if err := v.createPorts(); err != nil {
		return err
	}
	serve := func(network, path string, serve func(*net.UnixListener)) error {
		listener, err := listen(network, path)
		if err == nil {
			v.listeners = append(v.listeners, listener)
			v.running.Go(func() { serve(listener) })
		}
		return err
	}
	if err := serve("unix", v.config.APISocket, v.serveAPI); err != nil {
		return err
	}
	if err := serve("unixpacket", v.config.StatsSocket, func(l *net.UnixListener) { v.segment.serve(l, v.occupy) }); err != nil {
		return err
	}
	if v.config.CLISocket == "" {
		return nil
	}
	return serve("unix", v.config.CLISocket, v.serveCLI)
}

func (v *vpp) close() {
	for _, listener := range v.listeners {
		listener.Close()
	}
	for _, s := range v.bfd.byKey {
		v.bfdSilence(s)
	}
	v.underlay.close()
}

// occupy waits until the main thread is free, and occupies it. It returns false if the run has ended.
// free releases the main thread.
func (v *vpp) occupy() (free func(), alive bool) {
	select {
	case v.main <- struct{}{}:
		return func() { <-v.main }, true
	case <-v.halted:
		return func() {}, false
	}
}

// halt ends the run as a crash does: connections are closed and memory is lost. Clients can still read the
// stats segment that they have mapped, but it does not change any more.
func (v *vpp) halt() {
	v.mu.Lock()
	v.stopped = true
	v.turned.Broadcast()
	close(v.halted)
	v.close()
	for c := range v.clients {
		c.conn.Close()
		c.close()
	}
	v.mu.Unlock()
	v.running.Wait()
	v.segment.close()
}

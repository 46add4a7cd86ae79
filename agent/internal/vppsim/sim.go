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
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
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
		if p, ok := v.outward(i, v.fib()); ok && v.receives(i) && v.receives(p.far) {
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

// Config describes the VPP to simulate. The zero value describes a VPP with the interface local0 only.
type Config struct {
	// APISocket and StatsSocket are the paths to listen on. If both are empty, Start creates all sockets,
	// including the CLISocket, in a temporary folder. Stop removes this folder.
	APISocket   string `json:"-"`
	StatsSocket string `json:"-"`
	// CLISocket is the path of the CLI socket, which accepts pings. If it is empty, there is no CLI
	// socket.
	CLISocket string `json:"-"`

	// Version is the version in the reply to show_version. Empty means DefaultVersion.
	Version string `json:"version"`
	// Interfaces exist from boot on, in this order and after local0.
	Interfaces []Interface `json:"interfaces"`
	// Routes are in the FIB from boot on, in addition to the routes of interface addresses.
	Routes []Route `json:"routes"`
	// Traffic is generated on every access interface with a complete path.
	Traffic Traffic `json:"traffic"`
	// WithoutMessages are messages that the message table lacks, as in an older release or without a
	// plugin. Examples are "gre_tunnel_add_del_v2" and "lcp_itf_pair_get".
	WithoutMessages []string `json:"without_messages"`

	// LCPPairs are the ports that linux-cp mirrors. If LCPPairs is not empty, the linux-cp plugin counts as
	// loaded. By default, VPP does not load this plugin.
	LCPPairs []LCPPair `json:"lcp_pairs"`

	// StatsSegment is the size of the stats segment in bytes (`statseg { size }`). 0 means
	// DefaultStatsSegment. The stand-in only reports how full the segment is. VPP aborts when the segment is
	// full, and the stand-in does not.
	StatsSegment uint64 `json:"stats_segment"`

	// Underlay is a folder that all stand-ins of a network share. Frames that a packet generator sends into a
	// tunnel reach the router at the far end through this folder. Without a folder, these frames are lost.
	Underlay string `json:"underlay"`
	Links    Links  `json:"links"`
	// Reload returns the current Links. It is called for each group of frames that is sent or received.
	// If Reload is nil, the Links never change.
	Reload func() (Links, error) `json:"-"`

	// Clock is the clock by which traffic is counted. nil means time.Now.
	Clock func() time.Time `json:"-"`
}

// from reports whether the simulated VPP has this release or a later release.
func (c *Config) from(year, month int) bool {
	var itsYear, itsMonth int
	_, err := fmt.Sscanf(c.Version, "%d.%d", &itsYear, &itsMonth)
	return err == nil && (itsYear > year || itsYear == year && itsMonth >= month)
}

// DefaultVersion is the version of a VPP 25.10. It contains "vppsim", by which an agent knows that the
// counters are synthetic.
const DefaultVersion = "25.10-vppsim"

// DefaultStatsSegment is the default size in bytes. It is enough for tens of thousands of interfaces.
// VPP's own default is 32 MB.
const DefaultStatsSegment = 256 << 20

// Interface is a port of the router, or a foreign sub-interface.
type Interface struct {
	Name string `json:"name"`
	// IPMTU is the L3 MTU in bytes. 0 means 9000.
	IPMTU uint32 `json:"ip_mtu"`
	// AdminUp and LinkUp default to true.
	AdminUp *bool `json:"admin_up"`
	LinkUp  *bool `json:"link_up"`
	// Addresses include the prefix length, for example "10.0.0.0/31".
	Addresses []netip.Prefix `json:"addresses"`
	// Table is the FIB table of the addresses, for both families. The table exists from boot on.
	Table uint32 `json:"table"`
	Tag   string `json:"tag"`
	// Device is the device class. "" means the device class of host-interfaces. Frames of ports with "iavf",
	// "octeon", "ena" and "mvpp2" pass the feature arc of VPP's device API, which has no policer.
	Device string `json:"device"`
	// SubInterfaces are created on the port at boot. The portal does not manage them.
	SubInterfaces []SubInterface `json:"sub_interfaces"`
}

// SubInterface is a sub-interface with tags as in create_subif. InnerVLAN 0 means that the sub-interface has
// one tag.
type SubInterface struct {
	ID         uint32 `json:"id"`
	OuterVLAN  uint16 `json:"outer_vlan"`
	InnerVLAN  uint16 `json:"inner_vlan"`
	Dot1ad     bool   `json:"dot1ad"`
	ExactMatch bool   `json:"exact_match"`
	Tag        string `json:"tag"`
}

// Route is an entry of the FIB. If it drops packets, the destination is unreachable.
type Route struct {
	Prefix netip.Prefix `json:"prefix"`
	Drop   bool         `json:"drop"`
	// Table is the number of the FIB table. The table exists from boot on.
	Table uint32 `json:"table"`

	lookupIn uint32 // 0, or the table in which the lookup continues
}

// Links describes what the links to other routers can carry. All sizes are sizes of IP packets, in bytes.
type Links struct {
	// MTU is the size of the largest packet. Larger packets are lost. 0 means 9000.
	MTU int `json:"mtu"`
	// FragmentsOver is a size. The router sends larger IPv4 packets in fragments, as if the MTU of a link
	// were too small. 0 means that packets are never fragmented.
	FragmentsOver int `json:"fragments_over"`
	// Down is true if the links lose all packets although the routes use them.
	Down bool `json:"down"`
}

// Traffic is the mean rate in each direction of each VLL, in bit/s, and the size of its frames in bytes.
// Rate 0 means that there is no traffic. The traffic of a policed VLL stays below the rate of its policer,
// unless customers are configured to exceed their rates.
type Traffic struct {
	RateBps    uint64 `json:"rate_bps"`
	FrameBytes uint64 `json:"frame_bytes"`
	Exceeds    bool   `json:"exceeds"`
}

// LoadConfig reads a configuration from a JSON file. An unknown field is an error.
func LoadConfig(path string) (Config, error) {
	var config Config
	file, err := os.Open(path)
	if err != nil {
		return config, err
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil {
		return config, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

func (c *Config) fillDefaults() {
	if c.Version == "" {
		c.Version = DefaultVersion
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Traffic.FrameBytes == 0 {
		c.Traffic.FrameBytes = 700
	}
}

func defaultTrue(value *bool) bool { return value == nil || *value }

func (c *Config) absentMessages() []string {
	if len(c.LCPPairs) > 0 {
		return c.WithoutMessages
	}
	return append([]string{"lcp_itf_pair_get", "lcp_itf_pair_details"}, c.WithoutMessages...)
}

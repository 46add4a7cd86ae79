package vppsim

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"time"
)

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

package vppsim

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// Config describes the VPP to simulate. The zero value is a bare VPP with only local0.
type Config struct {
	// APISocket and StatsSocket are the paths to listen on. If they are empty, Start creates all sockets,
	// including CLISocket, in a temporary folder that Stop removes.
	APISocket   string `json:"-"`
	StatsSocket string `json:"-"`
	// CLISocket is the path of the CLI socket, which accepts pings. If it is empty, there is none.
	CLISocket string `json:"-"`

	// Version is the result of show_version; empty means DefaultVersion.
	Version string `json:"version"`
	// Interfaces exist from boot, in this order, after local0.
	Interfaces []Interface `json:"interfaces"`
	// Routes are in the FIB from boot, in addition to those of interface addresses.
	Routes []Route `json:"routes"`
	// Traffic is generated on every access interface with a complete path.
	Traffic Traffic `json:"traffic"`
	// WithoutMessages are missing from the message table, as in an older release or without a plugin:
	// "gre_tunnel_add_del_v2", "lcp_itf_pair_get".
	WithoutMessages []string `json:"without_messages"`

	// LCPPairs load the linux-cp plugin, which VPP leaves off by default.
	LCPPairs []LCPPair `json:"lcp_pairs"`

	// StatsSegment is the size of `statseg { size }` in bytes; 0 means DefaultStatsSegment. The stand-in
	// only reports how full it is. It does not abort when it is full, as VPP does.
	StatsSegment uint64 `json:"stats_segment"`

	// Underlay is a folder that the stand-ins of one network share. Through it, the frames that a packet
	// generator sends into a tunnel reach the router at the tunnel's far end. Without a folder they are
	// lost.
	Underlay string `json:"underlay"`
	Links    Links  `json:"links"`
	// Reload returns the current Links, before each frame that is sent or received. nil means that they
	// never change.
	Reload func() (Links, error) `json:"-"`

	// Clock is the clock for counting traffic; nil means time.Now.
	Clock func() time.Time `json:"-"`
}

// from reports whether this is a VPP of that release or a later one.
func (c *Config) from(year, month int) bool {
	var itsYear, itsMonth int
	_, err := fmt.Sscanf(c.Version, "%d.%d", &itsYear, &itsMonth)
	return err == nil && (itsYear > year || itsYear == year && itsMonth >= month)
}

// DefaultVersion contains "vppsim". An agent therefore knows that the counters are synthetic.
const DefaultVersion = "25.10-vppsim"

// DefaultStatsSegment is enough for tens of thousands of interfaces; VPP's own default is 32 MB.
const DefaultStatsSegment = 256 << 20

// Interface is a port of the router, or a foreign sub-interface.
type Interface struct {
	Name string `json:"name"`
	// IPMTU is the L3 MTU in bytes; 0 means 9000.
	IPMTU uint32 `json:"ip_mtu"`
	// AdminUp and LinkUp default to true.
	AdminUp *bool `json:"admin_up"`
	LinkUp  *bool `json:"link_up"`
	// Addresses have a prefix length: "10.0.0.0/31".
	Addresses []netip.Prefix `json:"addresses"`
	// Table is the table of its addresses in both families. It exists from boot too.
	Table uint32 `json:"table"`
	Tag   string `json:"tag"`
	// Device is the device class; "" means that of host-interfaces. Frames of ports with "iavf", "octeon",
	// "ena" and "mvpp2" take the feature arc of VPP's device API, which has no policer.
	Device string `json:"device"`
	// SubInterfaces are created on the port at boot, as foreign objects.
	SubInterfaces []SubInterface `json:"sub_interfaces"`
}

// SubInterface names the tags as create_subif does; InnerVLAN 0 means one tag.
type SubInterface struct {
	ID         uint32 `json:"id"`
	OuterVLAN  uint16 `json:"outer_vlan"`
	InnerVLAN  uint16 `json:"inner_vlan"`
	Dot1ad     bool   `json:"dot1ad"`
	ExactMatch bool   `json:"exact_match"`
	Tag        string `json:"tag"`
}

// Route is one FIB entry. A drop route means that the destination is unreachable.
type Route struct {
	Prefix netip.Prefix `json:"prefix"`
	Drop   bool         `json:"drop"`
	// Table is the number of the FIB table, which exists from boot too.
	Table uint32 `json:"table"`

	lookupIn uint32 // 0, or the table that it leads into
}

// Links are the capabilities of the router's links to others. Sizes are of IP packets, in bytes.
type Links struct {
	// MTU is the size of the largest packet; larger ones are lost. 0 means 9000.
	MTU int `json:"mtu"`
	// FragmentsOver is the size above which IPv4 packets are sent in fragments, as over a link of the
	// router with too small an MTU; 0 for never.
	FragmentsOver int `json:"fragments_over"`
	// Down is true while the links carry nothing, although routes lead over them.
	Down bool `json:"down"`
}

// Traffic is the mean rate in each direction of each VLL, in bit/s, and the size of its frames in bytes. A
// zero rate means no traffic. A policed VLL carries less if its policer's rate is lower, unless customers
// are configured to exceed their rates.
type Traffic struct {
	RateBps    uint64 `json:"rate_bps"`
	FrameBytes uint64 `json:"frame_bytes"`
	Exceeds    bool   `json:"exceeds"`
}

// LoadConfig reads a JSON file. An unknown field is an error.
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
	return append([]string{"lcp_itf_pair_get", "lcp_itf_pair_get_v2", "lcp_itf_pair_details"}, c.WithoutMessages...)
}

package report

import (
	"strings"
	"unicode"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/foundlines"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
)

// These structures are described in docs/reference/agent-reports.md. A member that may be null is a pointer
// or a slice. If a member with omitempty is nil, it is absent from the report.

type countersBody struct {
	Schema int    `json:"schema"`
	BootID string `json:"boot_id"`
	SentMS int64  `json:"sent_ms"`
	// KernelBootID is null for samples without uptimes.
	KernelBootID *string `json:"kernel_boot_id"`
	// SentUptimeMS is null if the router has been restarted since the samples were taken.
	SentUptimeMS *int64       `json:"sent_uptime_ms"`
	Simulated    bool         `json:"simulated"`
	Dropped      int64        `json:"dropped"`
	Samples      []sampleBody `json:"samples"`
}

type sampleBody struct {
	Seq          int64           `json:"seq"`
	FromMS       int64           `json:"from_ms"`
	ToMS         int64           `json:"to_ms"`
	FromUptimeMS int64           `json:"from_uptime_ms"`
	ToUptimeMS   int64           `json:"to_uptime_ms"`
	Ends         []endCountsBody `json:"ends"`
	// Interfaces are interfaces that the agent did not create: ports, and sub-interfaces with addresses.
	Interfaces []PortCount       `json:"interfaces"`
	Router     *routerCountsBody `json:"router"`
}

// routerCountsBody has null for values that VPP does not count.
type routerCountsBody struct {
	NoSuchTunnel     *uint64 `json:"no_such_tunnel"`
	FragmentsSent    *uint64 `json:"fragments_sent"`
	Reassembled      *uint64 `json:"reassembled"`
	ReassemblyFailed *uint64 `json:"reassembly_failed"`
	Buffers          *uint64 `json:"buffers"`
	BuffersFree      *uint64 `json:"buffers_free"`
}

func routerCountsBodyOf(r *RouterCount) *routerCountsBody {
	if r == nil {
		return nil
	}
	body := &routerCountsBody{
		NoSuchTunnel: r.NoSuchTunnel, FragmentsSent: r.FragmentsSent, Reassembled: r.Reassembled, ReassemblyFailed: r.ReassemblyFailed,
	}
	if r.Total != 0 {
		body.Buffers, body.BuffersFree = &r.Total, &r.Free
	}
	return body
}

type endCountsBody struct {
	intent.Key
	InBytes    uint64 `json:"in_bytes"`
	InPackets  uint64 `json:"in_packets"`
	OutBytes   uint64 `json:"out_bytes"`
	OutPackets uint64 `json:"out_packets"`
	// Policer is null if the readings of the end's policer have no reliable difference.
	Policer *policerBody `json:"policer"`
	// InDrops and OutDrops are null if the readings have no reliable difference.
	InDrops  *uint64 `json:"in_drops"`
	OutDrops *uint64 `json:"out_drops"`
}

type policerBody struct {
	ConformBytes   uint64 `json:"conform_bytes"`
	ConformPackets uint64 `json:"conform_packets"`
	ExceedBytes    uint64 `json:"exceed_bytes"`
	ExceedPackets  uint64 `json:"exceed_packets"`
	ViolateBytes   uint64 `json:"violate_bytes"`
	ViolatePackets uint64 `json:"violate_packets"`
}

func policerBodyOf(c *Colours) *policerBody {
	if c == nil {
		return nil
	}
	return &policerBody{
		c.Conform.Bytes, c.Conform.Packets, c.Exceed.Bytes, c.Exceed.Packets, c.Violate.Bytes, c.Violate.Packets,
	}
}

func sampleOf(s Sample) sampleBody {
	body := sampleBody{
		s.Seq, s.FromMS, s.ToMS, s.FromUptimeMS, s.ToUptimeMS, []endCountsBody{}, append([]PortCount{}, s.Ports...), routerCountsBodyOf(s.Router),
	}
	for _, e := range s.Ends {
		body.Ends = append(body.Ends, endCountsBody{
			e.Key, e.In.Bytes, e.In.Packets, e.Out.Bytes, e.Out.Packets, policerBodyOf(e.Policed),
			e.Dropped.In, e.Dropped.Out,
		})
	}
	return body
}

type eventsBody struct {
	Schema int         `json:"schema"`
	BootID string      `json:"boot_id"`
	SentMS int64       `json:"sent_ms"`
	Events []eventBody `json:"events"`
}

type eventBody struct {
	Seq        int64   `json:"seq"`
	AtMS       int64   `json:"at_ms"`
	Kind       string  `json:"kind"`
	Interface  *string `json:"interface"`
	VLL        *string `json:"vll"`
	End        *string `json:"end"`
	Generation *int64  `json:"generation"`
	Detail     *string `json:"detail"`
}

type observedBody struct {
	Schema            int      `json:"schema"`
	BootID            string   `json:"boot_id"`
	SentMS            int64    `json:"sent_ms"`
	ObservationNumber int64    `json:"look"`
	AgentVersion      string   `json:"agent_version"`
	VPP               vppBody  `json:"vpp"`
	Encapsulations    []string `json:"encapsulations"`
	Policing          string   `json:"policing"`
	ActivationTests   bool     `json:"line_tests"`
	GREKeys           bool     `json:"gre_keys"`
	Freezes           bool     `json:"freezes"`
	// LinkLossForwarding means that this agent can shut a port down because of the far end's link.
	LinkLossForwarding bool `json:"link_loss_forwarding"`
	// UnderlayTables means that this agent creates tunnels in the table that the portal names.
	UnderlayTables bool   `json:"underlay_tables"`
	Probes         bool   `json:"probes"`
	Adoption       string `json:"adoption"` // "refused" or "allowed"
	Labels         bool   `json:"labels"`   // this agent requests the names of lines, for SNMP
	PathWatch      bool   `json:"path_watch"`
	// Watching has the BFD timing of the stored intent, or null if the intent does not watch paths.
	Watching   *watchBody      `json:"watching"`
	Generation generationBody  `json:"generation"`
	Interfaces []interfaceBody `json:"interfaces"`
	Routes     []routeBody     `json:"routes"`
	Ends       []endBody       `json:"ends"`
	Paths      []pathBody      `json:"paths"`
	// Circuits are cross-connects and tunnels that the agent did not create.
	Circuits []circuitBody `json:"circuits"`
	// SetAside are files that the agent could not use, each with the reason.
	SetAside []durable.SetAsideFile `json:"set_aside"`
	// Freeze is null if the router is not frozen.
	Freeze *freeze.Shown `json:"freeze"`
}

func setAsideOf(status converge.Status) []durable.SetAsideFile {
	files := []durable.SetAsideFile{}
	for _, aside := range status.SetAside {
		files = append(files, durable.SetAsideFile{Path: printable(aside.Path), Why: printable(aside.Why)})
	}
	return files
}

type vppBody struct {
	Connected bool    `json:"connected"`
	Version   *string `json:"version"`
	BootMS    *int64  `json:"boot_ms"`
	Simulated *bool   `json:"simulated"`
	Workers   *int    `json:"workers"`
	// Plugins are the plugins that VPP has loaded, or null if VPP does not list them.
	Plugins []string `json:"plugins"`
	// Absent is true if no process listens on VPP's socket, which means that VPP does not run.
	Absent bool `json:"absent"`
	// Hangs is true if VPP accepts connections but does not reply.
	Hangs bool `json:"hangs"`
}

// awayOf returns the body for a VPP that cannot be read.
func awayOf(status converge.Status) vppBody {
	return vppBody{Absent: status.Absent, Hangs: status.Hangs()}
}

func vppOf(status converge.Status) vppBody {
	if status.VPP == nil {
		return awayOf(status)
	}
	info := *status.VPP
	body := vppBody{Connected: true, Version: printableOr(&info.Version), Simulated: new(info.Simulated()), Workers: &info.Workers, Plugins: info.Plugins}
	if info.BootMS != 0 {
		body.BootMS = &info.BootMS
	}
	return body
}

type generationBody struct {
	Stored  *int64 `json:"held"`
	Applied *int64 `json:"applied"`
}

func generationOf(status converge.Status) generationBody {
	var body generationBody
	if status.Intent != nil {
		body.Stored = &status.Intent.Generation
	}
	if status.Applied != nil {
		body.Applied = &status.Applied.Generation
	}
	return body
}

type interfaceBody struct {
	Name      string   `json:"name"`
	SwIfIndex uint32   `json:"sw_if_index"`
	AdminUp   bool     `json:"admin_up"`
	LinkUp    bool     `json:"link_up"`
	IPMTU     *uint32  `json:"ip_mtu"`
	Addresses []string `json:"addresses"`
	// Tables are the IDs of the interface's IPv4 table and IPv6 table.
	Tables  [2]uint32 `json:"tables"`
	Tag     *string   `json:"tag"`
	LinuxCP *string   `json:"linux_cp"`
	// Parent is the port of a sub-interface. It is absent for other interfaces.
	Parent *string `json:"parent,omitempty"`
	// Frames describes the frames that a sub-interface takes from its port. It is absent for other interfaces.
	Frames *framesBody `json:"frames,omitempty"`
	// Load is null if the last two readings of the counters have no reliable difference.
	Load *loadBody `json:"load"`
}

// framesBody selects frames. A null member accepts any value.
type framesBody struct {
	Dot1ad    *bool   `json:"dot1ad"`
	Outer     *uint16 `json:"outer"`
	Inner     *uint16 `json:"inner"`
	LeastTags uint8   `json:"least_tags"`
	MostTags  uint8   `json:"most_tags"` // intent.ManyTags means three or more
}

func framesOf(f intent.Frames) *framesBody {
	body := &framesBody{LeastTags: f.Least, MostTags: f.Most}
	if !f.AnyTPID {
		body.Dot1ad = &f.Dot1ad
	}
	if !f.AnyOuter {
		body.Outer = &f.Outer
	}
	if !f.AnyInner {
		body.Inner = &f.Inner
	}
	return body
}

// loadBody has the load and the speed of an interface (bit/s). The speed is null if VPP does not know it.
type loadBody struct {
	RxBPS    uint64  `json:"rx_bps"`
	TxBPS    uint64  `json:"tx_bps"`
	SpeedBPS *uint64 `json:"speed_bps"`
}

type routeBody struct {
	Address   string `json:"address"`
	Reachable bool   `json:"reachable"`
}

type watchBody struct {
	IntervalMS int `json:"interval_ms"`
	Multiplier int `json:"multiplier"`
}

// pathBody is a watched path. Detail is the reason why there is no BFD session for the path. It is null if
// there is a session.
type pathBody struct {
	Local   string  `json:"local"`
	Remote  string  `json:"remote"`
	State   string  `json:"state"`
	SinceMS int64   `json:"since_ms"`
	Foreign bool    `json:"foreign"`
	Detail  *string `json:"detail"`
}

type endPathBody struct {
	State   string `json:"state"`
	SinceMS int64  `json:"since_ms"`
}

type endBody struct {
	intent.Key
	Revision  int32 `json:"revision"`
	LinkUp    bool  `json:"link_up"`
	ShutDown  bool  `json:"held_down"` // the agent keeps the port shut down because of the far end's link
	Reachable *bool `json:"reachable"`
	InSync    bool  `json:"in_sync"`
	Policed   bool  `json:"policed"`
	// Path is the state of the tunnel's path, or null if the path is not watched.
	Path  *endPathBody `json:"path"`
	Drift []plan.Drift `json:"drift"`
	// Contested are settings that other clients change again after each repair.
	Contested []contestedBody `json:"contested"`
	// VLANLoss is present only if VPP may drop the end's frames as frames of an unknown VLAN.
	VLANLoss *vlanLossBody `json:"vlan_loss,omitempty"`
}

type vlanLossBody struct {
	State   string `json:"state"`
	SinceMS int64  `json:"since_ms"` // when frames last arrived
	Detail  string `json:"detail"`
}

type contestedBody struct {
	plan.Drift
	SinceMS int64 `json:"since_ms"` // time of the first repair
	Repairs int   `json:"repairs"`
}

// printable replaces unprintable characters in a text by U+FFFD, because the portal stores no control
// characters. The text may come from any client of VPP. The number of characters stays the same.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// printableOr does the same as printable for a text that may be nil.
func printableOr(text *string) *string {
	if text == nil {
		return nil
	}
	return new(printable(*text))
}

// nameable reports whether the portal can refer to an interface with this name. In the portal, names of ports
// and links consist of visible ASCII characters.
func nameable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

// circuitBody is a circuit that the agent did not create: two cross-connected interfaces, or a tunnel without
// a cross-connect. For such a tunnel, Far is null.
type circuitBody struct {
	Near sideBody  `json:"near"`
	Far  *sideBody `json:"far"`
	Out  bool      `json:"out"` // Near's frames are sent to Far
	In   bool      `json:"in"`  // Far's frames are sent to Near
}

// sideBody is one side of a circuit. It has either an Attachment or a Tunnel, and the other member is null.
type sideBody struct {
	Interface  string          `json:"interface"`
	Tag        *string         `json:"tag"`
	AdminUp    bool            `json:"admin_up"`
	Rewrite    uint32          `json:"rewrite"` // VPP's tag rewrite operation: 0 none, 3 pop one, 4 pop two
	Attachment *attachmentBody `json:"attachment"`
	Tunnel     *tunnelBody     `json:"tunnel"`
}

// attachmentBody is a port or a sub-interface. Tags is 0 for a whole port. Wide means that the sub-interface
// selects frames by something other than given VLANs, for example by "any".
type attachmentBody struct {
	Port    string `json:"port"`
	LinkUp  bool   `json:"link_up"`
	Tags    uint8  `json:"tags"`
	Dot1ad  bool   `json:"dot1ad"`
	Outer   uint16 `json:"outer"`
	Inner   uint16 `json:"inner"`
	Exact   bool   `json:"exact"`
	Wide    bool   `json:"wide"`
	Policed bool   `json:"policed"`
}

// tunnelBody is a tunnel. A member that does not exist for the tunnel's encapsulation is null. Standard means
// that the tunnel has the settings that the agent's own tunnels have (UDP port, mode).
type tunnelBody struct {
	Encapsulation string  `json:"encapsulation"`
	Local         string  `json:"local"`
	Remote        string  `json:"remote"`
	VNI           *uint32 `json:"vni"`
	GREKey        *uint32 `json:"gre_key"`
	Standard      bool    `json:"standard"`
	Table         uint32  `json:"table"`
}

func circuitsOf(s *observe.Snapshot, todo *plan.Plan) []circuitBody {
	bodies := []circuitBody{}
	for _, c := range foundlines.Circuits(s, todo) {
		body := circuitBody{Near: sideOf(s, c.Near), Out: c.Out, In: c.In}
		if c.Far.Interface != nil {
			body.Far = new(sideOf(s, c.Far))
		}
		bodies = append(bodies, body)
	}
	return bodies
}

func sideOf(s *observe.Snapshot, side foundlines.Side) sideBody {
	body := sideBody{Interface: printable(side.Name), AdminUp: side.AdminUp, Rewrite: side.Rewrite}
	if side.Tag != "" {
		body.Tag = printableOr(&side.Tag)
	}
	if t := side.Tunnel; t != nil {
		body.Tunnel = &tunnelBody{
			Encapsulation: string(t.Encapsulation), Local: t.Local.String(), Remote: t.Remote.String(), Standard: t.Default, Table: t.Table,
		}
		if t.Kind().HasVNI {
			body.Tunnel.VNI = &t.VNI
		} else {
			body.Tunnel.GREKey = &t.GREKey
		}
		return body
	}
	body.Attachment = &attachmentBody{
		Tags: side.Sub.Tags, Dot1ad: side.Sub.Dot1ad, Outer: side.Sub.Outer, Inner: side.Sub.Inner, Exact: side.Sub.Exact,
		Wide: side.Sub.Wide(), Policed: s.Policed[side.Index], LinkUp: side.LinkUp,
	}
	if side.Port != nil {
		body.Attachment.Port, body.Attachment.LinkUp = printable(side.Port.Name), side.Port.AdminUp && side.Port.LinkUp
	}
	return body
}

package vppsim

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
)

func (v *vpp) sockclntCreate(c *call, m *memclnt.SockclntCreate) {
	c.client.name, _, _ = strings.Cut(m.Name, "\x00")
	c.reply(&memclnt.SockclntCreateReply{Index: c.client.index, MessageTable: v.table.entries})
}

func (v *vpp) sockclntDelete(c *call, _ *memclnt.SockclntDelete) {
	c.reply(&memclnt.SockclntDeleteReply{Response: 1})
	c.client.close()
}

func (v *vpp) controlPing(c *call, _ *memclnt.ControlPing) {
	c.reply(&memclnt.ControlPingReply{ClientIndex: c.client.index, VpePID: v.pid})
}

func (v *vpp) showVersion(_ *vpe.ShowVersion, reply *vpe.ShowVersionReply) {
	reply.Program, reply.Version, reply.BuildDate = "vpe", v.config.Version, "vppsim"
}

func (v *vpp) showThreads(_ *vlib.ShowThreads, reply *vlib.ShowThreadsReply) {
	reply.ThreadData = []vlib.ThreadData{{Name: "vpp_main", PID: uint32(os.Getpid())}}
}

// cliInband executes a command of the debug CLI. Only the commands that the agent uses are supported.
func (v *vpp) cliInband(m *vlib.CliInband, reply *vlib.CliInbandReply) {
	command := strings.TrimSpace(m.Cmd)
	if name, ok := strings.CutPrefix(command, "show interface features "); ok {
		reply.Reply, reply.Retval = v.showFeatures(name)
		return
	}
	if rest, ok := strings.CutPrefix(command, "packet-generator "); ok {
		reply.Reply, reply.Retval = v.packetGenerator(rest)
		return
	}
	switch command {
	case "show version":
		reply.Reply = "vpp v" + v.config.Version + "\n"
	case "show api clients":
		reply.Reply = v.listClients()
	case "show packet-generator":
		reply.Reply = v.listStreams()
	case "show plugins":
		reply.Reply = v.listPlugins()
	default:
		var known bool
		if reply.Reply, reply.Retval, known = v.trace(command); !known {
			reply.Retval, reply.Reply = retvalUnspecified, "vppsim knows only `show version', `show plugins', `show api clients', `show interface features' and those of the packet generator and the tracer\n"
		}
	}
}

// pluginOf maps a plugin to one of its messages. If the message table contains the message, the plugin counts
// as loaded.
var pluginOf = map[string]string{
	"geneve": "geneve_tunnel_dump", "gre": "gre_tunnel_dump", "linux_cp": "lcp_itf_pair_get", "vxlan": "vxlan_tunnel_v2_dump",
}

// listPlugins lists the plugins in the form of vlib/unix/plugin.c.
func (v *vpp) listPlugins() string {
	var b strings.Builder
	fmt.Fprintf(&b, " Plugin path is: none\n\n     %-41s%-33s%s\n", "Plugin", "Version", "Description")
	absent, number := v.config.absentMessages(), 0
	for _, name := range slices.Sorted(maps.Keys(pluginOf)) {
		if !slices.Contains(absent, pluginOf[name]) {
			number++
			fmt.Fprintf(&b, "%3d. %-41s%-33s%s\n", number, name+"_plugin.so", v.config.Version, name)
		}
	}
	return b.String()
}

// listClients lists the clients in the form of vlibmemory/socket_api.c. As in VPP, %20s cuts off longer
// names.
func (v *vpp) listClients() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Socket clients\n%20s %8s\n", "Name", "Fildesc")
	for c := range v.clients {
		fmt.Fprintf(&b, "%20.20s %8d\n", c.name, c.index)
	}
	return b.String()
}

// stream is a stream of a packet generator. Each time the stream is enabled, the generator sends a number of
// frames to the output of an interface, or receives these frames on its own interface.
type stream struct {
	name        string
	limit, rate int
	size        int // bytes
	made        int // the number of frames since the stream was last enabled
	generator   uint32
	node        string
	frame       []byte // the frame that the generator's interface receives; nil if a node sends the stream
}

func (v *vpp) generatorCreate(m *pg.PgCreateInterfaceV3, reply *pg.PgCreateInterfaceV3Reply) {
	reply.SwIfIndex = interface_types.InterfaceIndex(v.generator(uint32(m.InterfaceID)).index)
}

// generator returns the generator's interface with this ID, and creates it if necessary. As in VPP, every ID
// is valid.
func (v *vpp) generator(id uint32) *iface {
	if i := v.generators[id]; i != nil {
		return i
	}
	i := v.insert(&iface{
		name: fmt.Sprintf("pg%d", int32(id)), device: "pg", ethernet: true, mac: portMAC(fmt.Sprint("pg", id)),
		mtu: [4]uint32{defaultMTU}, linkMTU: defaultMTU,
	})
	v.generators[id] = i
	return i
}

func (v *vpp) generatorDelete(i *iface, _ *pg.PgDeleteInterface) int32 {
	if i.device != "pg" {
		return retvalInvalidInterface
	}
	maps.DeleteFunc(v.generators, func(_ uint32, of *iface) bool { return of == i })
	v.setAdmin(i, false)
	v.removeSubinterfaces(i)
	v.remove(i)
	return 0
}

// newStream matches the two supported forms of a new stream. A stream without an interface has a rate and is sent to
// the interface that node names. A stream with an interface has no rate and the node ethernet-input; the interface
// receives it, as if from a cable.
var newStream = regexp.MustCompile(`^new \{ name (\S+) limit (\d+)(?: rate (\d+))? size (\d+)-(\d+)(?: source pg(\d+)| interface pg(\d+))? ` +
	`node (\S+) data \{ hex 0x([0-9a-f]+) \} \}$`)

// packetGenerator executes a command of vnet/pg/cli.c. As in VPP, a refusal is a text in the output.
func (v *vpp) packetGenerator(line string) (output string, retval int32) {
	if m := newStream.FindStringSubmatch(line); m != nil {
		return v.addStream(m)
	}
	command, name, _ := strings.Cut(line, " ")
	at := slices.IndexFunc(v.streams, func(s *stream) bool { return s.name == name })
	switch {
	case command == "enable-stream" && at >= 0:
		v.generate(v.streams[at])
	case command == "enable-stream":
		return "packet-generator enable-stream: unknown input `" + name + "'", retvalUnspecified
	case command == "disable-stream" && at >= 0: // it has sent all at once
	case command == "delete" && at >= 0:
		v.streams = slices.Delete(v.streams, at, at+1)
	case command == "delete":
		return "packet-generator delete: expected stream name `" + name + "'", retvalUnspecified
	default:
		return "packet-generator: unknown input `" + line + "'", retvalUnspecified
	}
	return "", 0
}

// addStream replaces a stream with the same name. Without a source, VPP creates an interface pg-1 for it.
func (v *vpp) addStream(m []string) (output string, retval int32) {
	numbers := make([]int, len(m))
	for n, text := range m {
		numbers[n], _ = strconv.Atoi(text)
	}
	received := m[7] != ""
	if received != (m[3] == "") || received && m[8] != "ethernet-input" {
		return "packet-generator new: unknown input `" + m[0] + "'", retvalUnspecified
	}
	s := &stream{name: m[1], limit: numbers[2], rate: numbers[3], size: numbers[4], generator: none, node: m[8]}
	if received {
		s.generator, s.node = uint32(numbers[7]), ""
		frame, err := hex.DecodeString(m[9])
		if v.generators[s.generator] == nil || err != nil {
			return "packet-generator new: unknown input `interface pg" + m[7] + "'", retvalUnspecified
		}
		s.frame = frame
	} else if v.named(s.node) == nil {
		return "packet-generator new: unknown input `node " + s.node + "'", retvalUnspecified
	}
	if m[6] != "" {
		s.generator = uint32(numbers[6])
	}
	v.generator(s.generator)
	v.streams = append(slices.DeleteFunc(v.streams, func(other *stream) bool { return other.name == s.name }), s)
	return "", 0
}

// generate sends all frames of the stream at once. It also sets the generator's interface up.
func (v *vpp) generate(s *stream) {
	i := v.generator(s.generator)
	i.carrier = true
	v.setAdmin(i, true)
	s.made = s.limit
	if s.frame != nil {
		v.receiveFrames(i, s.limit, s.size, s.frame)
		return
	}
	if out := v.named(s.node); out != nil && out.adminUp {
		if t := v.tunnelAt(out.index); t != nil {
			v.transmit(t, s.size, s.made)
		}
	}
}

// listStreams prints the streams as in vnet/pg/cli.c.
func (v *vpp) listStreams() string {
	if len(v.streams) == 0 {
		return "no streams currently defined\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s%12s%16s%s\n", "Name", "Enabled", "Count", "Parameters")
	for _, s := range v.streams {
		fmt.Fprintf(&b, "%-16s%12s%16d limit %d, rate %.2e pps, size %d-%d, buffer-size 2048, worker 0, \n",
			s.name, "No", s.made, s.limit, float64(s.rate), s.size, s.size)
	}
	return b.String()
}

// tracer simulates the packet tracer (vlib/trace.c). It traces the frames that match its filter and that a
// port drops because no sub-interface has the VLAN of the frame.
type tracer struct {
	armed   bool
	filters [][]byte // the outer tags of frames to trace
}

var traceFilter = regexp.MustCompile(`^classify filter trace mask hex 0{24}ffff0fff match hex 0{24}([0-9a-f]{8})$`)

// trace executes a command of the tracer. known is false for all other commands.
func (v *vpp) trace(command string) (output string, retval int32, known bool) {
	m := traceFilter.FindStringSubmatch(command)
	switch {
	case m != nil:
		tag, _ := hex.DecodeString(m[1])
		v.tracer.filters = append(v.tracer.filters, tag)
	case command == "classify filter trace del":
		v.tracer.filters = nil
	case command == "trace filter none", strings.HasPrefix(command, "trace filter include error-drop "):
	case command == "clear trace":
		v.tracer.armed = false
	case command == "show classify filter":
		used := "none"
		if len(v.tracer.filters) > 0 {
			used = "0"
		}
		return fmt.Sprintf("%-30s Table(s)\n%-30s --------\n%-30s first table %s\n", "Filter Used By", "--------------", "packet tracer:", used), 0, true
	case command == "show trace filter function":
		return "(*) name:vnet_is_packet_traced description: classifier based filter priority: 50\n", 0, true
	case strings.HasPrefix(command, "trace add af-packet-input ") && strings.HasSuffix(command, " filter"):
		v.tracer.armed = true
	case strings.HasPrefix(command, "trace add "):
		return "unknown node\n", retvalUnspecified, true
	case strings.HasPrefix(command, "show trace"):
		return v.showTrace(), 0, true
	default:
		return "", 0, false
	}
	return "", 0, true
}

// showTrace prints one frame for each sub-interface that gets no frames because its port drops them.
func (v *vpp) showTrace() string {
	var b strings.Builder
	b.WriteString("------------------- Start of thread 0 vpp_main -------------------\n")
	packets := 0
	for _, i := range v.interfaces.all() {
		if !v.tracer.armed || v.config.Traffic.RateBps == 0 || v.receives(i) || !v.filtered(i.sub) {
			continue
		}
		packets++
		fmt.Fprintf(&b, "Packet %d\n\n00:00:01:000001: af-packet-input\n  af_packet: hw_if_index %d rx-queue 0 next-index 4\n"+
			"00:00:01:000002: ethernet-input\n  IP4: 02:00:00:00:00:0a -> 02:00:00:00:00:0b%s\n"+
			"00:00:01:000003: error-drop\n  rx:%s\n00:00:01:000004: drop\n  ethernet-input: unknown vlan\n\n",
			packets, i.sup, i.sub.shownTags(), v.port(i).name)
	}
	if packets == 0 {
		b.WriteString("No packets in trace buffer\n")
	}
	return b.String()
}

func (v *vpp) filtered(s *subif) bool {
	return slices.ContainsFunc(v.tracer.filters, func(tag []byte) bool {
		return (uint16(tag[0])<<8|uint16(tag[1]) == 0x88a8) == (s.flags&dot1ad != 0) && uint16(tag[2])<<8|uint16(tag[3]) == s.outer
	})
}

// shownTags returns the tags of a frame in the form of ethernet-input. As in VPP, all tags have the name of
// the first tag's type.
func (s *subif) shownTags() string {
	name := "802.1q"
	if s.flags&dot1ad != 0 {
		name = "802.1ad"
	}
	tags := fmt.Sprintf(" %s vlan %d", name, s.outer)
	if s.numberOfTags() == 2 {
		tags += fmt.Sprintf(" %s vlan %d", name, s.inner)
	}
	return tags
}

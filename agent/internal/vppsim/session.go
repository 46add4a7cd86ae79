package vppsim

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/binapi/vpe_types"
)

// sessionOperations handle the session of a client. The first operation must be sockclnt_create, because
// its position in the list fixes its message ID.
func sessionOperations() []operation {
	return []operation{
		on((*vpp).sockclntCreate, &memclnt.SockclntCreateReply{}),
		on((*vpp).sockclntDelete, &memclnt.SockclntDeleteReply{}),
		on((*vpp).controlPing, &memclnt.ControlPingReply{}),
		on((*vpp).apiVersions, &memclnt.APIVersionsReply{}),
		on((*vpp).showVersion, &vpe.ShowVersionReply{}),
		on((*vpp).showSystemTime, &vpe.ShowVpeSystemTimeReply{}),
		on((*vpp).showThreads, &vlib.ShowThreadsReply{}),
		on((*vpp).cliInband, &vlib.CliInbandReply{}),
	}
}

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

func (v *vpp) apiVersions(c *call, _ *memclnt.APIVersions) {
	c.reply(&memclnt.APIVersionsReply{APIVersions: []memclnt.ModuleVersion{
		{Major: 2, Minor: 1, Name: "memclnt.api"},
	}})
}

func (v *vpp) showVersion(c *call, _ *vpe.ShowVersion) {
	c.reply(&vpe.ShowVersionReply{Program: "vpe", Version: v.config.Version, BuildDate: "vppsim"})
}

func (v *vpp) showSystemTime(c *call, _ *vpe.ShowVpeSystemTime) {
	now := float64(v.config.Clock().UnixNano()) / 1e9
	c.reply(&vpe.ShowVpeSystemTimeReply{VpeSystemTime: vpe_types.Timestamp(now)})
}

func (v *vpp) showThreads(c *call, _ *vlib.ShowThreads) {
	c.reply(&vlib.ShowThreadsReply{ThreadData: []vlib.ThreadData{
		{Name: "vpp_main", PID: uint32(os.Getpid())},
	}})
}

// cliInband executes a command of the debug CLI. Only the commands that the agent uses are supported.
func (v *vpp) cliInband(c *call, m *vlib.CliInband) {
	command := strings.TrimSpace(m.Cmd)
	if name, ok := strings.CutPrefix(command, "show interface features "); ok {
		c.reply(v.showFeatures(name))
		return
	}
	if rest, ok := strings.CutPrefix(command, "packet-generator "); ok {
		c.reply(v.packetGenerator(rest))
		return
	}
	if reply := v.trace(command); reply != nil {
		c.reply(reply)
		return
	}
	switch command {
	case "show version":
		c.reply(&vlib.CliInbandReply{Reply: "vpp v" + v.config.Version + "\n"})
	case "show api clients":
		c.reply(&vlib.CliInbandReply{Reply: v.listClients()})
	case "show packet-generator":
		c.reply(&vlib.CliInbandReply{Reply: v.listStreams()})
	case "show plugins":
		c.reply(&vlib.CliInbandReply{Reply: v.listPlugins()})
	default:
		c.reply(&vlib.CliInbandReply{Retval: retvalUnspecified, Reply: "vppsim knows only `show version', `show plugins', `show api clients', `show interface features' and those of the packet generator and the tracer\n"})
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

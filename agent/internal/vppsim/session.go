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

func (v *vpp) apiVersions(_ *memclnt.APIVersions, reply *memclnt.APIVersionsReply) {
	reply.APIVersions = []memclnt.ModuleVersion{{Major: 2, Minor: 1, Name: "memclnt.api"}}
}

func (v *vpp) showVersion(_ *vpe.ShowVersion, reply *vpe.ShowVersionReply) {
	reply.Program, reply.Version, reply.BuildDate = "vpe", v.config.Version, "vppsim"
}

func (v *vpp) showSystemTime(_ *vpe.ShowVpeSystemTime, reply *vpe.ShowVpeSystemTimeReply) {
	reply.VpeSystemTime = vpe_types.Timestamp(float64(v.config.Clock().UnixNano()) / 1e9)
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

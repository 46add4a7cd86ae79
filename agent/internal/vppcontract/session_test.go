package vppcontract

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/lcp"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/binapi/vxlan"
)

func TestTheMessageTableHasWhatTheAgentNeeds(t *testing.T) {
	both(t, func(d *device) {
		for _, m := range []api.Message{
			&vpe.ShowVersion{}, &memclnt.ControlPing{}, &vlib.ShowThreads{},
			&interfaces.SwInterfaceDump{}, &interfaces.SwInterfaceSetFlags{}, &interfaces.SwInterfaceSetMtu{},
			&interfaces.SwInterfaceTagAddDel{}, &interfaces.CreateSubif{}, &interfaces.DeleteSubif{},
			&interfaces.CreateLoopbackInstance{}, &interfaces.WantInterfaceEvents{},
			&vxlan.VxlanAddDelTunnelV3{}, &vxlan.VxlanTunnelV2Dump{},
			&geneve.GeneveAddDelTunnel2{}, &geneve.GeneveTunnelDump{},
			&gre.GreTunnelAddDel{}, &gre.GreTunnelDump{},
			&l2.SwInterfaceSetL2Xconnect{}, &l2.L2XconnectDump{}, &l2.L2InterfaceVlanTagRewrite{}, &l2.BridgeDomainDump{},
			&ip.IPAddressDump{}, &ip.IPRouteLookup{},
		} {
			if _, err := d.client.GetMsgID(m.GetMessageName(), m.GetCrcString()); err != nil {
				d.Errorf("%s: %v", m.GetMessageName(), err)
			}
		}
	})
}

func TestAMessageOfAPluginThatIsNotLoadedIsAbsent(t *testing.T) {
	both(t, func(d *device) {
		m := &lcp.LcpItfPairGet{}
		if _, err := d.client.GetMsgID(m.GetMessageName(), m.GetCrcString()); err == nil {
			d.Error("lcp_itf_pair_get is in the table")
		}
	})
}

func TestTheCLIShowsTheVersion(t *testing.T) {
	both(t, func(d *device) {
		if reply := send(d, &vlib.CliInband{Cmd: "show version"}, &vlib.CliInbandReply{}); reply.Retval != 0 || reply.Reply == "" {
			d.Errorf("show version: %+v", reply)
		}
	})
}

func TestControlPingReturnsTheProcessIDUntilARestart(t *testing.T) {
	both(t, func(d *device) {
		first := send(d, &memclnt.ControlPing{}, &memclnt.ControlPingReply{}).VpePID
		if again := send(d, &memclnt.ControlPing{}, &memclnt.ControlPingReply{}).VpePID; again != first || first == 0 {
			d.Errorf("pid %d, then %d", first, again)
		}
		if err := d.restart(); err != nil {
			d.Fatal(err)
		}
		d.connect()
		if again := send(d, &memclnt.ControlPing{}, &memclnt.ControlPingReply{}).VpePID; again == first {
			d.Errorf("after a restart the pid is still %d", first)
		}
	})
}

func TestARestartCutsTheConnectionAndLosesAllConfiguration(t *testing.T) {
	both(t, func(d *device) {
		d.vxlan("10.0.0.1", "10.0.0.2", 5)
		old := d.conn
		if err := d.restart(); err != nil {
			d.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := old.Invoke(ctx, &vpe.ShowVersion{}, &vpe.ShowVersionReply{}); err == nil {
			d.Error("the old connection still answers")
		}
		d.connect()
		if got := d.interfaces(); len(got) != 1 {
			d.Errorf("%d interfaces", len(got))
		}
	})
}

// frame returns a message in VPP's socket framing.
func frame(data []byte) []byte {
	framed := make([]byte, 16, 16+len(data))
	binary.BigEndian.PutUint32(framed[8:12], uint32(len(data)))
	return append(framed, data...)
}

func TestOnlyUnknownMessagesAreIgnored(t *testing.T) {
	both(t, func(d *device) {
		conn, err := net.Dial("unix", d.socket)
		if err != nil {
			d.Fatal(err)
		}
		defer conn.Close()
		unknown := make([]byte, 10)
		binary.BigEndian.PutUint16(unknown, 65000)
		if _, err := conn.Write(frame(unknown)); err != nil {
			d.Fatal(err)
		}
		d.portUp()
	})
}

func TestADisconnectingClientDoesNotAffectOthers(t *testing.T) {
	both(t, func(d *device) {
		d.Run("others", func(t *testing.T) {
			other := &device{T: t, socket: d.socket, stats: d.stats}
			other.connect()
			other.port()
		})
		if d.interfaces()["loop0"] == nil {
			d.Error("what the other client made is gone")
		}
		d.port()
	})
}

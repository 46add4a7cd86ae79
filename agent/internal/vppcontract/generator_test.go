package vppcontract

import (
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/adapter"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"
)

// generator creates the interface of a packet generator.
func (d *device) generator(id uint32) interface_types.InterfaceIndex {
	d.Helper()
	d.needs(&pg.PgCreateInterfaceV3{}, &pg.PgDeleteInterface{})
	return do(d, &pg.PgCreateInterfaceV3{InterfaceID: interface_types.InterfaceIndex(id)}, &pg.PgCreateInterfaceV3Reply{}).SwIfIndex
}

// runs returns the reply to a command of the debug CLI.
func (d *device) runs(line string) *vlib.CliInbandReply {
	d.Helper()
	return send(d, &vlib.CliInband{Cmd: line}, &vlib.CliInbandReply{})
}

func (d *device) quietly(line string) {
	d.Helper()
	if reply := d.runs(line); reply.Retval != 0 || reply.Reply != "" {
		d.Errorf("%s: retval %d, %q", line, reply.Retval, reply.Reply)
	}
}

// streamOf finds a stream in VPP's list. It returns whether the stream is enabled, and how many frames it
// has sent.
func (d *device) streamOf(name string) (enabled, made string) {
	d.Helper()
	for line := range strings.Lines(d.runs("show packet-generator").Reply) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == name {
			return fields[1], fields[2]
		}
	}
	return "", ""
}

// await waits until the condition is true.
func await(d *device, condition string, is func() bool) {
	d.Helper()
	for deadline := time.Now().Add(answerIn); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.Fatalf("never: %s", condition)
		}
	}
}

func TestAGeneratorIsASeparateKindOfPort(t *testing.T) {
	both(t, func(d *device) {
		index := d.generator(0x4c4c0000)
		made := d.at(index)
		if made.InterfaceName != "pg1280049152" || made.InterfaceDevType != "pg" || made.Flags&(up|linkUp) != 0 || made.Mtu[0] != 9000 ||
			made.SupSwIfIndex != uint32(index) || made.Tag != "" {
			d.Errorf("made %+v", made)
		}
		if again := d.generator(0x4c4c0000); again != index {
			d.Errorf("requested twice, it is %d and %d", index, again)
		}
		do(d, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: index, Tag: "ours"}, &interfaces.SwInterfaceTagAddDelReply{})
		if tag := d.at(index).Tag; tag != "ours" {
			d.Errorf("the tag is %q", tag)
		}
		do(d, &pg.PgDeleteInterface{SwIfIndex: index}, &pg.PgDeleteInterfaceReply{})
		if d.interfaces()["pg1280049152"] != nil {
			d.Error("it is left")
		}
		refused(d, &pg.PgDeleteInterface{SwIfIndex: index}, &pg.PgDeleteInterfaceReply{}, -2)
		if again := d.generator(0x4c4c0000); again != index || d.at(again).Tag != "" {
			d.Errorf("created again it is %+v", d.at(again))
		}
	})
}

func TestOnlyGeneratorsCanBeDeletedAsGenerators(t *testing.T) {
	both(t, func(d *device) {
		d.needs(&pg.PgDeleteInterface{})
		port := d.port()
		refused(d, &pg.PgDeleteInterface{SwIfIndex: port}, &pg.PgDeleteInterfaceReply{}, -2)
		refused(d, &pg.PgDeleteInterface{SwIfIndex: 9999}, &pg.PgDeleteInterfaceReply{}, -2)
		d.at(port)
	})
}

func TestAStreamSendsIntoAnUnconnectedTunnel(t *testing.T) {
	both(t, func(d *device) {
		tunnel := d.vxlan("10.0.0.1", "10.0.0.2", 7)
		name := d.at(tunnel).InterfaceName
		client := d.connectStats()
		sent := func() uint64 {
			return d.stat(client, "/if/tx").(adapter.CombinedCounterStat)[0][tunnel].Packets()
		}
		index := d.generator(5)
		d.quietly("packet-generator new { name longline-test limit 20 rate 100000 size 1500-1500 source pg5 node " + name +
			" data { hex 0x024c4c000002024c4c00000188b5 } }")
		if enabled, made := d.streamOf("longline-test"); enabled != "No" || made != "0" || sent() != 0 {
			d.Errorf("before it is enabled: %s %s, sent %d", enabled, made, sent())
		}
		for n := range uint64(2) {
			d.quietly("packet-generator enable-stream longline-test")
			await(d, "the frames leave", func() bool {
				enabled, made := d.streamOf("longline-test")
				return enabled == "No" && made == "20" && sent() == 20*(n+1)
			})
		}
		if i := d.at(index); i.Flags&up == 0 || i.Flags&linkUp == 0 {
			d.Errorf("the generator that has sent is %+v", i.Flags)
		}
		d.quietly("packet-generator delete longline-test")
		if enabled, _ := d.streamOf("longline-test"); enabled != "" {
			d.Error("the stream is left")
		}
		do(d, &pg.PgDeleteInterface{SwIfIndex: index}, &pg.PgDeleteInterfaceReply{})
	})
}

func TestAMissingStreamIsRefusedWithAText(t *testing.T) {
	both(t, func(d *device) {
		for _, line := range []string{
			"packet-generator delete longline-test", "packet-generator enable-stream longline-test",
			"packet-generator new { name longline-test limit 1 rate 1 size 64-64 source pg5 node nowhere0 data { hex 0x00 } }",
		} {
			if reply := d.runs(line); reply.Reply == "" {
				d.Errorf("%s: retval %d, %q", line, reply.Retval, reply.Reply)
			}
		}
		if reply := d.runs("show packet-generator"); reply.Retval != 0 || !strings.Contains(reply.Reply, "no streams currently defined") {
			d.Errorf("streams: %+v", reply)
		}
		if d.interfaces()["pg5"] != nil {
			d.Error("a stream that was refused has made its generator")
		}
	})
}

func TestAStreamWithoutASourceCreatesAGenerator(t *testing.T) {
	both(t, func(d *device) {
		d.port()
		d.quietly("packet-generator new { name theirs limit 1 rate 1 size 64-64 node loop0 data { hex 0x00 } }")
		if d.interfaces()["pg-1"] == nil {
			d.Errorf("interfaces: %v", d.interfaces())
		}
	})
}

func TestFragmentsAreCountedUnderTheirNodes(t *testing.T) {
	both(t, func(d *device) {
		client := d.connectStats()
		for _, name := range []string{
			"/err/ip4-frag/fragment_sent", "/err/ip6-frag/fragment_sent",
			"/err/ip4-local-full-reassembly/reass_success", "/err/ip6-local-full-reassembly/reass_success",
		} {
			threads, ok := d.stat(client, name).(adapter.SimpleCounterStat)
			if !ok || len(threads) != 1 || len(threads[0]) != 1 || threads[0][0] != 0 {
				d.Errorf("%s is %+v", name, d.stat(client, name))
			}
		}
	})
}

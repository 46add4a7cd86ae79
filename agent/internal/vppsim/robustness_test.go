package vppsim_test

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/lcp"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/core"

	"longline.dev/agent/internal/vppsim"
)

// TestRandomMessagesAreSurvived sends random messages with every ID, truncated at random positions.
func TestRandomMessagesAreSurvived(t *testing.T) {
	sim := start(t, router)
	random := rand.New(rand.NewPCG(1, 2))
	conn, err := net.Dial("unix", sim.APISocket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go io.Copy(io.Discard, conn)
	for range 20_000 {
		data := make([]byte, 6+random.IntN(300))
		for n := range data {
			data[n] = byte(random.Uint32())
		}
		// ID 17 is sockclnt_delete, which would close the connection.
		id := uint16(18 + random.IntN(120))
		binary.BigEndian.PutUint16(data, id)
		header := make([]byte, 16)
		binary.BigEndian.PutUint32(header[8:], uint32(len(data)))
		if _, err := conn.Write(append(header, data...)); err != nil {
			t.Fatalf("hung up: %v", err)
		}
	}
	invoke(t, connect(t, sim), &vpe.ShowVersion{}, &vpe.ShowVersionReply{})
}

func TestAnOversizedFrameClosesTheConnection(t *testing.T) {
	sim := start(t, router)
	for name, length := range map[string]uint32{"huge": 1 << 31, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", sim.APISocket())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			header := make([]byte, 16)
			binary.BigEndian.PutUint32(header[8:], length)
			if _, err := conn.Write(header); err != nil {
				t.Fatal(err)
			}
			conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("read: %v, want the end of the connection", err)
			}
		})
	}
	invoke(t, connect(t, sim), &vpe.ShowVersion{}, &vpe.ShowVersionReply{})
}

func TestManyClientsAtOnce(t *testing.T) {
	sim := start(t, router)
	var clients sync.WaitGroup
	for n := range 20 {
		clients.Go(func() {
			conn, err := core.Connect(socketclient.NewVppClient(sim.APISocket()))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Disconnect()
			for vlan := range 20 {
				request := &interfaces.CreateSubif{SwIfIndex: customerPort, SubID: uint32(n*100 + vlan), OuterVlanID: uint16(n*100 + vlan), SubIfFlags: 2}
				if err := conn.Invoke(context.Background(), request, &interfaces.CreateSubifReply{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	if got := len(sim.Interfaces()); got != 3+400 {
		t.Errorf("%d interfaces", got)
	}
}

func TestAClientThatNeverReadsDoesNotBlockTheOthers(t *testing.T) {
	sim := start(t, router)
	conn, err := net.Dial("unix", sim.APISocket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	create := make([]byte, 16+70)
	binary.BigEndian.PutUint32(create[8:], 70)
	binary.BigEndian.PutUint16(create[16:], 15)
	for range 1000 { // a thousand message tables, more than any socket buffer can store
		if _, err := conn.Write(create); err != nil {
			t.Fatal(err)
		}
	}
	invoke(t, connect(t, sim), &vpe.ShowVersion{}, &vpe.ShowVersionReply{})
}

func TestOmittedMessagesAreAbsentFromTheTable(t *testing.T) {
	has := func(sim *vppsim.Sim, m api.Message) bool {
		client := socketclient.NewVppClient(sim.APISocket())
		if err := client.Connect(); err != nil {
			t.Fatal(err)
		}
		defer client.Disconnect()
		_, err := client.GetMsgID(m.GetMessageName(), m.GetCrcString())
		return err == nil
	}
	older := start(t, vppsim.Config{WithoutMessages: []string{"gre_tunnel_add_del_v2"}})
	if has(older, &gre.GreTunnelAddDelV2{}) || has(older, &gre.GreTunnelAddDelV2Reply{}) || !has(older, &gre.GreTunnelAddDel{}) {
		t.Error("gre_tunnel_add_del_v2 alone should be absent")
	}
	if has(older, &lcp.LcpItfPairGet{}) {
		t.Error("linux-cp is off by default")
	}
	withPairs := router
	withPairs.LCPPairs = []vppsim.LCPPair{{Interface: "host-cust1", Host: "cust1"}}
	if !has(start(t, withPairs), &lcp.LcpItfPairGet{}) {
		t.Error("with a pair, linux-cp is on")
	}
}

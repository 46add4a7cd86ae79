package activationtest

import (
	"fmt"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

func (r *router) reading() statseg.Reading {
	r.t.Helper()
	reading, err := r.stats.Read(r.session.Info().BootMS)
	if err != nil {
		r.t.Fatal(err)
	}
	return reading
}

// eventually waits until the condition is true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestFramesWithoutACrossConnectAreDropsOfTheTunnel: VPP counts the losses of a line's end towards its
// customer on the end's tunnel.
func TestFramesWithoutACrossConnectAreDropsOfTheTunnel(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, z *router) {
		for _, encapsulation := range []intent.Encapsulation{intent.VXLAN, intent.GENEVE, intent.GRE} {
			near, far := a.tunnelTo(z, encapsulation, 4), z.tunnelTo(a, encapsulation, 4)
			arrived(t, near, far, 64, 5)
			drops := func() uint64 { return z.reading().Losses.Drops[far.index] }
			before := drops()
			if got := arrived(t, near, far, 1518, 20); got != 20 {
				t.Fatalf("%s: %d of 20 frames arrive", encapsulation, got)
			}
			eventually(t, fmt.Sprintf("%s: all 23 are dropped", encapsulation), func() bool { return drops()-before == 23 })
		}
	})
}

// TestPacketsWithoutATunnelAreCounted also checks the drops of the interface that received the packets.
func TestPacketsWithoutATunnelAreCounted(t *testing.T) {
	onEveryPair(t, func(t *testing.T, a, z *router) {
		near, far := a.tunnelTo(z, intent.VXLAN, 4), z.tunnelTo(a, intent.VXLAN, 4)
		arrived(t, near, far, 64, 5)
		other := a.must(&vxlan.VxlanAddDelTunnelV3{IsAdd: true, Instance: none, SrcAddress: vpp.IPAddress(a.local[4]),
			DstAddress: vpp.IPAddress(z.local[4]), Vni: 8, McastSwIfIndex: interface_types.InterfaceIndex(none), DecapNextIndex: none}).(*vxlan.VxlanAddDelTunnelV3Reply)
		before := z.reading()
		a.tunnelAt(other.SwIfIndex).send(1518, 20)
		eventually(t, "they are counted", func() bool { return *z.reading().Errors.NoSuchTunnel-*before.Errors.NoSuchTunnel == 20 })
		// VPP also drops its own packets on interfaces that receive nothing, the neighbour may send
		// packets in the meantime, and a reading is not of one instant. A stand-in does not count these
		// packets as received.
		eventually(t, "one interface drops at least these, and no more than it received", func() bool {
			after := z.reading()
			for i, count := range after.Losses.Drops {
				dropped, received := count-before.Losses.Drops[i], after.Rx[i].Packets-before.Rx[i].Packets
				if dropped >= 20 && dropped <= max(received, 20) {
					return true
				}
			}
			return false
		})
		if tunnel := z.reading().Losses.Drops[far.index] - before.Losses.Drops[far.index]; tunnel != 0 {
			t.Errorf("the existing tunnel dropped %d", tunnel)
		}
	})
}

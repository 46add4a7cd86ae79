package vppcontract

import (
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/vxlan"
)

const (
	push1       = 1
	pop1        = 3
	pop2        = 4
	translate11 = 5
)

type index = interface_types.InterfaceIndex

func (d *device) xconnect(rx, tx index) {
	d.Helper()
	do(d, xconnect(rx, tx, true), &l2.SwInterfaceSetL2XconnectReply{})
}

func xconnect(rx, tx index, enable bool) api.Message {
	return &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: rx, TxSwIfIndex: tx, Enable: enable}
}

func (d *device) xconnects() map[index]index {
	d.Helper()
	found := map[index]index{}
	for _, x := range dump[*l2.L2XconnectDetails](d, &l2.L2XconnectDump{}) {
		found[x.RxSwIfIndex] = x.TxSwIfIndex
	}
	return found
}

func rewrite(of index, op uint32) *l2.L2InterfaceVlanTagRewrite {
	return &l2.L2InterfaceVlanTagRewrite{SwIfIndex: of, VtrOp: op}
}

func (d *device) rewrite(of index, op uint32) {
	d.Helper()
	do(d, rewrite(of, op), &l2.L2InterfaceVlanTagRewriteReply{})
}

func TestACrossConnectIsUnidirectional(t *testing.T) {
	both(t, func(d *device) {
		a, b := d.subif(d.port(), 1), d.subif(d.port(), 2)
		d.xconnect(a, b)
		if got := d.xconnects(); len(got) != 1 || got[a] != b {
			d.Errorf("cross-connects %v", got)
		}
		d.xconnect(b, a)
		if got := d.xconnects(); len(got) != 2 || got[b] != a {
			d.Errorf("cross-connects %v", got)
		}
		do(d, xconnect(a, 0, false), &l2.SwInterfaceSetL2XconnectReply{})
		if got := d.xconnects(); len(got) != 1 || got[b] != a {
			d.Errorf("after one was taken away: %v", got)
		}
	})
}

func TestACrossConnectOfAnUnknownIndexIsRefused(t *testing.T) {
	both(t, func(d *device) {
		sub := d.subif(d.port(), 1)
		refused(d, xconnect(77, sub, true), &l2.SwInterfaceSetL2XconnectReply{}, -2)
		refused(d, xconnect(sub, 77, true), &l2.SwInterfaceSetL2XconnectReply{}, -2)
	})
}

// pair cross-connects two sub-interfaces in both directions.
func (d *device) pair(port index) (a, b index) {
	d.Helper()
	a, b = d.subif(port, 1), d.subif(port, 2)
	d.xconnect(a, b)
	d.xconnect(b, a)
	return a, b
}

func TestDeletingASubinterfaceTakesItsPeerOutOfL2(t *testing.T) {
	both(t, func(d *device) {
		a, b := d.pair(d.port())
		d.rewrite(b, pop1)
		d.deleteSubif(a)
		if got := d.xconnects(); len(got) != 0 {
			d.Errorf("cross-connects %v", got)
		}
		if got := d.at(b).VtrOp; got != 0 {
			d.Errorf("the peer still has vtr_op %d", got)
		}
	})
}

func TestAPeerOfAOneWayCrossConnectStaysConnectedToTheNextInterface(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		a, b := d.subif(port, 1), d.subif(port, 2)
		d.xconnect(b, a)
		d.deleteSubif(a)
		if got := d.xconnects(); len(got) != 1 || got[b] != a {
			d.Fatalf("cross-connects %v, want the peer's to the deleted index", got)
		}
		unrelated := d.subif(port, 3)
		if got := d.xconnects(); unrelated != a || len(got) != 1 || got[b] != unrelated {
			d.Errorf("the next interface is %d, cross-connects %v", unrelated, got)
		}
	})
}

func TestDeletingAHalfConnectedInterfaceTakesAnUnrelatedOneOutOfL2(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		a, b := d.subif(port, 1), d.subif(port, 2)
		d.xconnect(b, a)
		d.deleteSubif(a)
		unrelated, other := d.subif(port, 3), d.subif(port, 4)
		d.xconnect(unrelated, other)
		d.deleteSubif(b)
		if got := d.xconnects(); len(got) != 0 {
			d.Errorf("cross-connects %v", got)
		}
	})
}

func TestDeletingATunnelUnderACrossConnect(t *testing.T) {
	for name, c := range map[string]struct {
		make, unmake func(d *device) index
		peerStays    bool
	}{
		"VXLAN": {
			make: func(d *device) index { return d.vxlan("10.0.0.1", "10.0.0.2", 5) },
			unmake: func(d *device) index {
				return do(d, vxlanDelete("10.0.0.1", "10.0.0.2", 5), &vxlan.VxlanAddDelTunnelV3Reply{}).SwIfIndex
			},
		},
		"GENEVE": {
			make: func(d *device) index { return d.geneve("10.0.0.1", "10.0.0.2", 5) },
			unmake: func(d *device) index {
				return do(d, geneveDelete("10.0.0.1", "10.0.0.2", 5), &geneve.GeneveAddDelTunnel2Reply{}).SwIfIndex
			},
			peerStays: true,
		},
		"GRE": {
			make: func(d *device) index { return d.gre("10.0.0.1", "10.0.0.2") },
			unmake: func(d *device) index {
				return do(d, greDelete("10.0.0.1", "10.0.0.2"), &gre.GreTunnelAddDelReply{}).SwIfIndex
			},
			peerStays: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(d *device) {
				access, tunnel := d.subif(d.port(), 1), c.make(d)
				d.xconnect(access, tunnel)
				d.xconnect(tunnel, access)
				if deleted := c.unmake(d); deleted != tunnel {
					d.Errorf("%d was deleted, want %d", deleted, tunnel)
				}
				got := d.xconnects()
				if c.peerStays && (len(got) != 1 || got[access] != tunnel) {
					d.Errorf("cross-connects %v, want the peer's to the deleted tunnel", got)
				}
				if !c.peerStays && len(got) != 0 {
					d.Errorf("cross-connects %v, want none", got)
				}
			})
		})
	}
}

func TestATagRewriteIsReadBack(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		sub := d.subif(port, 1)
		d.xconnect(sub, port)
		d.rewrite(sub, pop1)
		if got := d.at(sub).VtrOp; got != pop1 {
			d.Errorf("vtr_op %d", got)
		}
		push := rewrite(sub, push1)
		push.PushDot1q, push.Tag1 = 1, 42
		do(d, push, &l2.L2InterfaceVlanTagRewriteReply{})
		if got := d.at(sub); got.VtrOp != push1 || got.VtrPushDot1q != 1 || got.VtrTag1 != 42 {
			d.Errorf("vtr_op %d, dot1q %d, tag %d", got.VtrOp, got.VtrPushDot1q, got.VtrTag1)
		}
	})
}

func TestPoppingMoreTagsThanThereAreIsRefusedAndClearsThePushedTags(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		sub := d.subif(port, 1)
		d.xconnect(sub, port)
		d.rewrite(sub, pop1)
		refused(d, rewrite(sub, pop2), &l2.L2InterfaceVlanTagRewriteReply{}, -72)
		if got := d.at(sub).VtrOp; got != pop1 {
			d.Errorf("after a refused pop: vtr_op %d, want the old one", got)
		}
		translate := rewrite(sub, translate11)
		translate.PushDot1q, translate.Tag1 = 1, 5
		do(d, translate, rewriteReply())
		refused(d, rewrite(sub, pop2), rewriteReply(), -72)
		if i := d.at(sub); i.VtrOp != translate11 || i.VtrTag1 != 0 || i.VtrPushDot1q != 0 {
			d.Errorf("vtr_op %d, tag %d, dot1q %d; want the old one, pushing nothing", i.VtrOp, i.VtrTag1, i.VtrPushDot1q)
		}
		refused(d, rewrite(port, pop1), &l2.L2InterfaceVlanTagRewriteReply{}, -72)
		refused(d, rewrite(77, pop1), &l2.L2InterfaceVlanTagRewriteReply{}, -2)
	})
}

func TestATagRewriteSurvivesAnotherCrossConnectButNotL3(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		sub, other := d.subif(port, 1), d.subif(port, 2)
		d.xconnect(sub, port)
		d.rewrite(sub, pop1)
		d.xconnect(sub, other)
		if got := d.at(sub).VtrOp; got != pop1 {
			d.Errorf("after another cross-connect: vtr_op %d", got)
		}
		do(d, xconnect(sub, 0, false), &l2.SwInterfaceSetL2XconnectReply{})
		d.xconnect(sub, other)
		if got := d.at(sub).VtrOp; got != 0 {
			d.Errorf("after a move to L3 and back: vtr_op %d", got)
		}
	})
}

func TestATagRewriteMayComeBeforeTheCrossConnect(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		sub := d.subif(port, 1)
		d.rewrite(sub, pop1)
		d.xconnect(sub, port)
		if got := d.at(sub).VtrOp; got != pop1 {
			d.Errorf("vtr_op %d", got)
		}
	})
}

func TestATagRewriteIsDeletedWithItsInterface(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		sub := d.subif(port, 1)
		d.xconnect(sub, port)
		d.rewrite(sub, pop1)
		d.deleteSubif(sub)
		again := d.subif(port, 1)
		if got := d.at(again).VtrOp; again != sub || got != 0 {
			d.Errorf("index %d, then %d with vtr_op %d", sub, again, got)
		}
	})
}

func TestATagRewriteSetInL3OutlivesItsInterface(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		sub := d.subif(port, 1)
		d.rewrite(sub, pop1)
		d.deleteSubif(sub)
		again := d.subif(port, 2)
		if got := d.at(again).VtrOp; again != sub || got != pop1 {
			d.Errorf("index %d, then %d with vtr_op %d", sub, again, got)
		}
	})
}

func TestABridgedPortIsInTheDumpOfItsBridgeDomain(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		do(d, &l2.BridgeDomainAddDelV2{BdID: 5, IsAdd: true, Flood: true, UuFlood: true, Forward: true, Learn: true},
			&l2.BridgeDomainAddDelV2Reply{})
		do(d, &l2.SwInterfaceSetL2Bridge{RxSwIfIndex: port, BdID: 5, Enable: true}, &l2.SwInterfaceSetL2BridgeReply{})
		domains := dump[*l2.BridgeDomainDetails](d, &l2.BridgeDomainDump{BdID: none, SwIfIndex: anyIndex})
		if len(domains) != 1 || domains[0].BdID != 5 || len(domains[0].SwIfDetails) != 1 || domains[0].SwIfDetails[0].SwIfIndex != port {
			d.Errorf("bridge domains %+v", domains)
		}
		refused(d, &l2.BridgeDomainAddDelV2{BdID: 5, IsAdd: true}, &l2.BridgeDomainAddDelV2Reply{}, -119)
		refused(d, &l2.BridgeDomainAddDelV2{BdID: 5}, &l2.BridgeDomainAddDelV2Reply{}, -120)
		d.xconnect(port, d.port())
		domains = dump[*l2.BridgeDomainDetails](d, &l2.BridgeDomainDump{BdID: none, SwIfIndex: anyIndex})
		if len(domains) != 1 || len(domains[0].SwIfDetails) != 0 {
			d.Errorf("after a cross-connect: %+v", domains)
		}
	})
}

// Connected in both directions: with only one direction, VPP reads memory that it has just freed
// (l2_input_interface_add_del) and may keep the deleted index cross-connected.
func TestDeletingAPortTakesItAndItsPeerOutOfL2(t *testing.T) {
	both(t, func(d *device) {
		port, peer := d.port(), d.port()
		d.xconnect(port, peer)
		d.xconnect(peer, port)
		do(d, &interfaces.DeleteLoopback{SwIfIndex: port}, &interfaces.DeleteLoopbackReply{})
		if got := d.xconnects(); len(got) != 0 {
			d.Errorf("cross-connects %v", got)
		}
	})
}

func rewriteReply() *l2.L2InterfaceVlanTagRewriteReply { return &l2.L2InterfaceVlanTagRewriteReply{} }

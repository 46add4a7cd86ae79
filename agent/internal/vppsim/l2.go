package vppsim

import (
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

type l2kind int

const (
	l3Mode l2kind = iota
	xconnectMode
	bridgeMode
)

// l2mode is the L2 mode of an interface: none, one direction of a cross-connect, or membership of a
// bridge domain. peer is an interface index. The interface with this index may have been deleted, and another
// interface may have got the index.
type l2mode struct {
	kind   l2kind
	peer   uint32
	bridge uint32
	shg    uint8
}

func l2Operations() []operation {
	return []operation{
		on((*vpp).setXconnect, &l2.SwInterfaceSetL2XconnectReply{}),
		on((*vpp).xconnectDump, &l2.L2XconnectDetails{}),
	}
}

func (v *vpp) setXconnect(c *call, m *l2.SwInterfaceSetL2Xconnect) {
	reply := &l2.SwInterfaceSetL2XconnectReply{}
	rx := v.at(m.RxSwIfIndex)
	switch {
	case rx == nil:
		reply.Retval = retvalInvalidInterface
	case !m.Enable:
		v.leaveL2(rx)
	case v.at(m.TxSwIfIndex) == nil:
		reply.Retval = retvalInvalidInterface
	default:
		enterL2(rx, l2mode{kind: xconnectMode, peer: uint32(m.TxSwIfIndex)})
	}
	c.reply(reply)
}

// enterL2 puts an interface into an L2 mode. If the interface was in another L2 mode before, its tag rewrite
// remains.
func enterL2(i *iface, mode l2mode) {
	i.l2 = mode
}

// leaveL2 moves an interface to L3 mode. The interface loses its tag rewrite and its L2 features
// (set_int_l2_mode in vnet/l2/l2_input.c).
func (v *vpp) leaveL2(i *iface) {
	i.l2 = l2mode{}
	delete(v.rewrites, i.index)
	if a := v.policers.applied[i.index]; a != nil {
		a.l2 = false
	}
	delete(v.classifiers.works, i.index)
}

func (v *vpp) xconnectDump(c *call, _ *l2.L2XconnectDump) {
	for _, i := range v.interfaces {
		if i != nil && i.l2.kind == xconnectMode {
			c.reply(&l2.L2XconnectDetails{
				RxSwIfIndex: interface_types.InterfaceIndex(i.index),
				TxSwIfIndex: interface_types.InterfaceIndex(i.l2.peer),
			})
		}
	}
}

package vppsim

import (
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/gre"
)

// path is an end of a VLL on this router: the access interface and the interface that is cross-connected
// with it. The far interface is a tunnel or another access interface.
type path struct {
	access, far *iface
	tunnel      *tunnel // nil for a local cross-connect
}

// whole returns the path of an access interface. It returns true if the path forwards frames in both
// directions.
func (v *vpp) whole(access *iface, routes *fib) (path, bool) {
	p, ok := v.outward(access, routes)
	return p, ok && v.receives(access) && v.receives(p.far)
}

// outward returns the path of an access interface. It returns true if the path would forward frames while
// VPP's table of VLANs has both interfaces.
func (v *vpp) outward(access *iface, routes *fib) (path, bool) {
	if v.tunnelAt(access.index) != nil || access.l2.kind != xconnectMode {
		return path{}, false
	}
	far := v.connected(access)
	if far == nil || v.connected(far) != access || !v.carries(access) || !v.carries(far) {
		return path{}, false
	}
	t := v.tunnelAt(far.index)
	if t != nil && (t.decapNext == decapDrop || !routes.reaches(t)) {
		return path{}, false
	}
	return path{access, far, t}, true
}

// connected returns the interface at the other end of a cross-connect. It returns nil if no interface has the
// index in the cross-connect.
func (v *vpp) connected(i *iface) *iface {
	if i.l2.kind != xconnectMode || uint64(i.l2.peer) >= uint64(len(v.interfaces)) {
		return nil
	}
	return v.interfaces[i.l2.peer]
}

func (v *vpp) carries(i *iface) bool {
	return i.adminUp && v.interfaces[i.sup].adminUp && v.link(i)
}

// reaches reports whether the tunnel begins at an address of this router and the router has a route to
// its far end.
func (f *fib) reaches(t *tunnel) bool {
	return f.lookup(t.table, netipAddr(t.local)).path == fib_types.FIB_API_PATH_TYPE_LOCAL &&
		f.follow(t.table, netipAddr(t.remote)).path != fib_types.FIB_API_PATH_TYPE_DROP
}

// countsSent reports whether the tunnel counts frames that it sends. GRE tunnels for Ethernet (TEB) do not
// count these frames.
func (t *tunnel) countsSent() bool {
	_, isGRE := t.request.(gre.GreTunnelV2)
	return !isGRE
}

package vppsim

import (
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"go.fd.io/govpp/binapi/fib_types"
)

// path is an end of a VLL on this router: the access interface and the interface that is cross-connected
// with it. The far interface is a tunnel or another access interface.
type path struct {
	access, far *iface
	tunnel      *tunnel // nil for a local cross-connect
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
	if i.l2.kind != xconnectMode {
		return nil
	}
	return v.interfaces.at(i.l2.peer)
}

func (v *vpp) carries(i *iface) bool {
	return i.adminUp && v.port(i).adminUp && v.port(i).linkUp
}

// reaches reports whether the tunnel begins at an address of this router and the router has a route to
// its far end.
func (f *fib) reaches(t *tunnel) bool {
	return f.lookup(t.table, netipAddr(t.local)).path == fib_types.FIB_API_PATH_TYPE_LOCAL &&
		f.follow(t.table, netipAddr(t.remote)).path != fib_types.FIB_API_PATH_TYPE_DROP
}

// Synthetic traffic varies by a quarter around its mean rate, over some minutes, so that graphs look
// realistic. It depends only on the time and on the name of the flow. Both ends of a VLL know the name,
// so each router receives exactly what the other router sends.
const (
	swing       = 0.25
	swingPeriod = 10 * time.Minute
)

// count adds the traffic since the last call to the counters of every path. If VPP's table no longer has the
// VLAN of a path, count adds only the sent traffic.
func (v *vpp) count() {
	now := v.config.Clock()
	from := v.counted
	if !now.After(from) {
		return
	}
	v.counted = now
	if v.config.Traffic.RateBps == 0 {
		return
	}
	routes := v.fib()
	for _, i := range v.interfaces.all() {
		if p, ok := v.outward(i, routes); ok {
			v.countPath(p, from, now)
		}
	}
}

func (v *vpp) countPath(p path, from, to time.Time) {
	inward, outward := p.flows()
	mean := v.meanRate(p.access)
	in, out := v.carried(inward, mean, from, to), v.carried(outward, mean, from, to)
	if !v.receives(p.far) {
		out = 0
	}
	v.countBytes(sent, p.access, out)
	if v.receives(p.access) {
		v.countBytes(received, p.access, in)
	} else {
		v.countUnknown(p.access, in)
		in = 0
	}
	in = v.police(p.access, in, to.Sub(from))
	if p.tunnel == nil {
		return // the far interface is an access interface, which has its own path
	}
	v.countBytes(received, p.far, out)
	if p.tunnel.of.countsSent {
		v.countBytes(sent, p.far, in)
	}
}

// police adds the bytes that an interface received in a time to the counters of its policer, divided among
// the colours. It returns the number of bytes that pass.
func (v *vpp) police(i *iface, bytes uint64, while time.Duration) uint64 {
	p, index := v.working(i)
	if p == nil {
		return bytes
	}
	passed, size := uint64(0), v.config.Traffic.FrameBytes
	count := func(class int, bytes uint64) {
		v.segment.add(policed[class], index, bytes/size, bytes/size*size)
	}
	// Eir is the peak rate, which includes the conforming traffic.
	for class, kbps := range []uint32{p.config.Cir, max(p.config.Eir, p.config.Cir) - p.config.Cir} {
		share := min(bytes-passed, uint64(float64(kbps)*1000/8*while.Seconds())/size*size)
		count(class, share)
		passed += share
	}
	count(2, bytes-passed)
	v.drop(i, (bytes-passed)/size)
	return passed
}

// countUnknown counts frames that a port receives for a sub-interface that its VLAN table has lost
// (ethernet-input).
func (v *vpp) countUnknown(i *iface, bytes uint64) {
	packets, port := bytes/v.config.Traffic.FrameBytes, v.port(i)
	v.countBytes(received, port, bytes)
	v.drop(port, packets)
	v.segment.countError(unknownVLAN, packets)
}

// countBytes adds whole frames of the synthetic traffic to a counter of an interface.
func (v *vpp) countBytes(counter string, i *iface, bytes uint64) {
	v.countOn(counter, i, bytes/v.config.Traffic.FrameBytes, bytes)
}

// flows returns the names of two flows: from the customer, and to the customer. The far router derives the
// same two names in reverse order.
func (p path) flows() (inward, outward string) {
	if p.tunnel == nil {
		return p.access.name + ">" + p.far.name, p.far.name + ">" + p.access.name
	}
	local, remote := netipAddr(p.tunnel.local).String(), netipAddr(p.tunnel.remote).String()
	vni := strconv.Itoa(int(p.tunnel.vni & vniMask))
	return local + ">" + remote + " " + vni, remote + ">" + local + " " + vni
}

// meanRate returns the mean rate of an access interface's traffic in bit/s. The traffic varies around the
// mean. Unless customers exceed their rates, the mean is low enough that the traffic stays below the rate of
// the interface's policer. The far end has a policer with the same rate, and therefore the same mean rate.
func (v *vpp) meanRate(i *iface) float64 {
	mean := float64(v.config.Traffic.RateBps)
	if p, _ := v.working(i); p != nil && !v.config.Traffic.Exceeds {
		mean = min(mean, float64(max(p.config.Cir, p.config.Eir))*1000/(1+swing))
	}
	return mean
}

// carried returns the number of bytes of a flow between two times, in whole frames. The rate is the mean
// rate (bit/s) plus a sine. The function calculates the bytes since the Unix epoch for both times and
// subtracts them, so that no fraction is lost between two calls.
func (v *vpp) carried(flow string, mean float64, from, to time.Time) uint64 {
	hash := fnv.New32a()
	hash.Write([]byte(flow))
	phase := float64(hash.Sum32()) / math.MaxUint32 * 2 * math.Pi
	period := swingPeriod.Seconds()
	frames := func(t time.Time) uint64 {
		s := float64(t.UnixMicro()) / 1e6
		swung := swing * period / (2 * math.Pi) * (1 - math.Cos(2*math.Pi*s/period+phase))
		return uint64((s + swung) * mean / 8 / float64(v.config.Traffic.FrameBytes))
	}
	return (frames(to) - frames(from)) * v.config.Traffic.FrameBytes
}

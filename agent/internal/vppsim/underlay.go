package vppsim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/policer_types"
)

// underlay is the folder that connects the stand-ins of one network. In this folder, each stand-in has a
// socket for each local address of its tunnels.
type underlay struct {
	folder  *os.File
	sockets map[netip.Addr]*net.UnixConn
}

// frames are equal frames on their way from one router to another. All of them are sent as one datagram. Echo
// is set if they are ICMP echo packets.
type frames struct {
	Encapsulation string     `json:"encapsulation"`
	Family        int        `json:"family"`
	Source        netip.Addr `json:"source"`
	Destination   netip.Addr `json:"destination"`
	VNI           uint32     `json:"vni"`
	GREKey        uint32     `json:"gre_key"`
	Size          int        `json:"size"` // bytes of each frame inside the tunnel
	Count         int        `json:"count"`
	Fragments     int        `json:"fragments"` // number of fragments of each frame
	Echo          *echo      `json:"echo,omitempty"`
}

const (
	// mostFragments is the maximum number of fragments of a packet that VPP reassembles by default
	// (IP4_REASS_MAX_REASSEMBLY_LENGTH_DEFAULT).
	mostFragments = 3
	datagramBytes = 1 << 10
	ip4Header     = 20
	ip6Header     = 40
	greKeyField   = 4
)

func openUnderlay(folder string) (*underlay, error) {
	u := &underlay{sockets: map[netip.Addr]*net.UnixConn{}}
	if folder == "" {
		return u, nil
	}
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		u.folder, err = os.Open(folder)
	}
	return u, err
}

// socket returns the address of a socket in the folder. It does not use the path of the folder, which may be too
// long for a socket.
func (u *underlay) socket(name string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: fmt.Sprintf("/proc/self/fd/%d/%s", u.folder.Fd(), name)}
}

// listen opens a socket. It replaces the socket of a process that was killed.
func (u *underlay) listen(name string) (*net.UnixConn, error) {
	os.Remove(u.socket(name).Name)
	return net.ListenUnixgram("unixgram", u.socket(name))
}

func leave(socket *net.UnixConn) {
	os.Remove(socket.LocalAddr().String())
	socket.Close()
}

func (u *underlay) close() {
	if u == nil {
		return
	}
	for _, socket := range u.sockets {
		leave(socket)
	}
	if u.folder != nil {
		u.folder.Close()
	}
}

// listenAtTunnels opens a socket for each local address of a tunnel, and closes all others.
func (v *vpp) listenAtTunnels() {
	u := v.underlay
	if u.folder == nil {
		return
	}
	wanted := map[netip.Addr]bool{}
	v.eachTunnel(func(t *tunnel) { wanted[netipAddr(t.local)] = true })
	for address, socket := range u.sockets {
		if !wanted[address] {
			leave(socket)
			delete(u.sockets, address)
		}
	}
	for address := range wanted {
		if u.sockets[address] != nil {
			continue
		}
		if socket, err := u.listen(address.String()); err == nil {
			u.sockets[address] = socket
			v.running.Go(func() { v.receive(socket) })
		}
	}
}

// links returns the present capabilities of the links to other routers.
func (v *vpp) links() Links {
	links := v.config.Links
	if v.config.Reload != nil {
		if now, err := v.config.Reload(); err == nil {
			links = now
		}
	}
	if links.MTU == 0 {
		links.MTU = defaultMTU
	}
	return links
}

// overhead returns the number of bytes that encapsulation and IP add to a frame. The outer Ethernet header is not
// included.
func (t *tunnel) overhead() int {
	overhead := ip4Header + t.of.overhead
	if netipAddr(t.local).Is6() {
		overhead += ip6Header - ip4Header
	}
	if t.key.key != 0 {
		overhead += greKeyField
	}
	return overhead
}

func (v *vpp) transmit(t *tunnel, size, count int) {
	if t.of.countsSent {
		v.segment.add(sent, t.index, uint64(count), uint64(size*count))
	}
	if v.underlay.folder == nil || !v.fib().reaches(t) {
		return
	}
	f := frames{
		Encapsulation: t.of.encapsulation, Family: 4, Source: netipAddr(t.local), Destination: netipAddr(t.remote), VNI: t.vni & vniMask, GREKey: t.key.key,
		Size: size, Count: count, Fragments: 1,
	}
	links, packet := v.links(), size+t.overhead()
	if f.Source.Is6() {
		f.Family = 6
	} else if over := links.FragmentsOver; over > ip4Header && packet > over {
		room := (over - ip4Header) &^ 7
		f.Fragments = (packet - ip4Header + room - 1) / room
		v.segment.countError(fragmentSent4, uint64(f.Fragments*count))
	}
	if packet > links.MTU || links.Down {
		return
	}
	v.underlay.send(f)
}

// send sends frames to the router that has their destination address. If no router has this address, the
// frames are lost.
func (u *underlay) send(f frames) {
	data, err := json.Marshal(f)
	if err != nil {
		return
	}
	socket, err := net.DialUnix("unixgram", nil, u.socket(f.Destination.String()))
	if err != nil {
		return
	}
	defer socket.Close()
	socket.SetWriteDeadline(time.Now().Add(time.Second))
	socket.Write(data)
}

func (v *vpp) receive(socket *net.UnixConn) {
	data := make([]byte, datagramBytes)
	for {
		n, err := socket.Read(data)
		if err != nil {
			return
		}
		var f frames
		if json.Unmarshal(data[:n], &f) != nil {
			continue
		}
		v.mu.Lock()
		switch {
		case v.stopped:
		case f.Echo != nil:
			v.echoArrives(f)
		case f.Count > 0 && f.Size > 0:
			v.arrive(f)
		}
		v.mu.Unlock()
	}
}

// arrive counts arriving frames on the tunnel that has the key of the frames. If the tunnel is not
// cross-connected, arrive drops the frames.
func (v *vpp) arrive(f frames) {
	links, found := v.links(), false
	if links.Down {
		return
	}
	v.eachTunnel(func(t *tunnel) {
		mirrored := t.of.encapsulation == f.Encapsulation && netipAddr(t.local) == f.Destination && netipAddr(t.remote) == f.Source &&
			t.vni&vniMask == f.VNI && t.key.key == f.GREKey
		found = found || mirrored
		i := v.interfaces.at(t.index)
		if !mirrored || !i.adminUp || f.Size+t.overhead() > links.MTU ||
			v.fib().lookup(t.table, f.Destination).path != fib_types.FIB_API_PATH_TYPE_LOCAL {
			return
		}
		switch {
		case f.Fragments > mostFragments:
			v.segment.countError(tooManyPieces4, uint64(f.Count))
			return
		case f.Fragments > 1:
			v.segment.countError(reassembled4, uint64(f.Count))
		}
		v.segment.add(received, t.index, uint64(f.Count), uint64(f.Count*f.Size))
		if v.connected(i) == nil {
			v.drop(i, uint64(f.Count))
		}
	})
	if !found {
		v.noSuchTunnel(f)
	}
}

// tagHeader contains the fields of a frame that ethernet-input reads.
//
// If all frames of a vector come from one port, ethernet-input reads two tags and accepts only the outer
// types 0x8100 and 0x88a8 (eth_input_tag_lookup in vnet/ethernet/node.c). If the frames may come from several
// ports, for example behind a bond, it counts up to three tags and also accepts 0x9100 and 0x9200
// (parse_header).
type tagHeader struct {
	dot1ad       bool
	tags         int // 3 means three or more
	outer, inner uint16
}

const (
	typeVLAN     = 0x8100
	typeDot1ad   = 0x88a8
	typeVLAN9100 = 0x9100
	typeVLAN9200 = 0x9200
)

// readHeader reads the tags of a frame. As in VPP, an inner tag counts only if its type is 0x8100. mixed
// means that the vector may contain frames of several ports.
func readHeader(frame []byte, mixed bool) tagHeader {
	h := tagHeader{}
	at := 12
	next16 := func() uint16 {
		if at+2 > len(frame) {
			return 0
		}
		at += 2
		return binary.BigEndian.Uint16(frame[at-2:])
	}
	first := next16()
	switch first {
	case typeVLAN, typeDot1ad:
	case typeVLAN9100, typeVLAN9200:
		if !mixed {
			return h
		}
	default:
		return h
	}
	h.dot1ad, h.tags, h.outer = first == typeDot1ad, 1, next16()&0xfff
	if next16() != typeVLAN {
		return h
	}
	h.tags, h.inner = 2, next16()&0xfff
	if next16() == typeVLAN && mixed {
		h.tags = 3
	}
	return h
}

// classify returns the interface that gets a frame: a sub-interface of the port, or the port itself. It
// returns nil if no interface gets the frame (eth_identify_subint in vnet/ethernet/ethernet.h). A port in L3
// mode accepts only untagged frames.
func (v *vpp) classify(port *iface, h tagHeader) *iface {
	if h.tags == 1 && h.outer == 0 {
		h.tags = 0 // the tag has only a priority, so the frame counts as untagged
	}
	takes := func(i *iface) bool {
		switch {
		case !i.isSub():
			return h.tags == 0 || i.l2.kind != l3Mode
		case i.sub.flags&defaultSub != 0:
			return h.tags > 0
		case i.sub.numberOfTags() == 0:
			return h.tags == 0
		}
		return h.tags == int(i.sub.numberOfTags()) || h.tags > int(i.sub.numberOfTags()) && i.sub.flags&exactMatch == 0
	}
	var kind interface_types.SubIfFlags
	if h.dot1ad {
		kind = dot1ad
	}
	places := []vlanKey{
		{port.index, twoTags | kind, h.outer, h.inner}, {port.index, twoTags | innerAny | kind, h.outer, 0},
		{port.index, oneTag | kind, h.outer, 0}, {port.index, defaultSub, 0, 0}, {port.index, noTags, 0, 0},
	}
	for _, place := range places {
		if i := v.vlans[place]; i != nil && takes(i) {
			return i
		}
	}
	return nil
}

// receiveFrames processes equal frames that a port receives at the same time, as from a packet generator.
// The frames pass the features of the port, its bond, the table of VLANs and the L2 features. They leave
// through the cross-connected interface.
func (v *vpp) receiveFrames(port *iface, count, size int, frame []byte) {
	if !port.adminUp {
		return
	}
	v.countFrames(port, count, size)
	if p, index := v.nodePolicer(port); p != nil {
		count = v.policeBurst(port, p, index, count, size)
	}
	mixed := port.bond != nil
	if mixed {
		port = port.bond
		v.countFrames(port, count, size)
	}
	to := v.classify(port, readHeader(frame, mixed))
	switch {
	case to == nil:
		v.drop(port, uint64(count))
		v.segment.countError(unknownVLAN, uint64(count))
		return
	case !to.adminUp:
		v.drop(port, uint64(count))
		return
	case to != port:
		v.countFrames(to, count, size)
	}
	far := v.connected(to)
	if far == nil || !far.adminUp {
		v.drop(to, uint64(count))
		return
	}
	if p, index := v.l2Policer(to); p != nil {
		count = v.policeBurst(to, p, index, count, size)
	}
	v.countOn(sent, far, uint64(count), uint64(count*size))
}

func (v *vpp) countFrames(i *iface, count, size int) {
	v.segment.add(received, i.index, uint64(count), uint64(count*size))
}

// policeBurst returns the number of frames of a burst that a policer with full buckets lets through.
func (v *vpp) policeBurst(i *iface, p *namedPolicer, index uint32, count, size int) int {
	fits := func(bytes uint64) int { return int(min(uint64(count), bytes/uint64(size))) }
	conform := fits(p.config.Cb)
	passed := conform
	if p.config.Type != policer_types.SSE2_QOS_POLICER_TYPE_API_1R2C {
		passed = max(conform, fits(p.config.Eb)) // the bucket of the peak rate also contains the conforming frames
	}
	for class, frames := range []int{conform, passed - conform, count - passed} {
		v.segment.add(policed[class], index, uint64(frames), uint64(frames*size))
	}
	v.drop(i, uint64(count-passed))
	return passed
}

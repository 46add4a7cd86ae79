package vppsim

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/geneve"
	"go.fd.io/govpp/binapi/vxlan"
)

// underlay is the folder that connects the stand-ins of one network: each listens there at the addresses
// where its tunnels begin.
type underlay struct {
	folder  *os.File
	sockets map[netip.Addr]*net.UnixConn
}

// frames are frames in transit from one router to another, sent as a datagram. They may be an echo.
type frames struct {
	Encapsulation string     `json:"encapsulation"`
	Family        int        `json:"family"`
	Source        netip.Addr `json:"source"`
	Destination   netip.Addr `json:"destination"`
	VNI           uint32     `json:"vni"`
	GREKey        uint32     `json:"gre_key"`
	Size          int        `json:"size"` // bytes of each, inside the tunnel
	Count         int        `json:"count"`
	Fragments     int        `json:"fragments"` // number of fragments of each
	Echo          *echo      `json:"echo,omitempty"`
}

const (
	// mostFragments is the number of fragments that VPP reassembles by default
	// (IP4_REASS_MAX_REASSEMBLY_LENGTH_DEFAULT).
	mostFragments = 3
	datagramBytes = 1 << 10
	ip4Header     = 20
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

// at returns the socket of the router with that address. In this notation the path of a socket is never too
// long.
func (u *underlay) at(address netip.Addr) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: fmt.Sprintf("/proc/self/fd/%d/%s", u.folder.Fd(), address)}
}

func (u *underlay) close() {
	if u == nil {
		return
	}
	for address, socket := range u.sockets {
		u.leave(address, socket)
	}
	if u.folder != nil {
		u.folder.Close()
	}
}

func (u *underlay) leave(address netip.Addr, socket *net.UnixConn) {
	os.Remove(u.at(address).Name)
	socket.Close()
	delete(u.sockets, address)
}

// listenAtTunnels listens at the addresses where tunnels begin, and at no others.
func (v *vpp) listenAtTunnels() {
	u := v.underlay
	if u.folder == nil {
		return
	}
	wanted := map[netip.Addr]bool{}
	for _, ts := range []*tunnels{&v.vxlans, &v.geneves, &v.gres} {
		ts.each(everyIndex, func(t *tunnel) { wanted[netipAddr(t.local)] = true })
	}
	for address, socket := range u.sockets {
		if !wanted[address] {
			u.leave(address, socket)
		}
	}
	for address := range wanted {
		if u.sockets[address] != nil {
			continue
		}
		os.Remove(u.at(address).Name) // of a killed process
		if socket, err := net.ListenUnixgram("unixgram", u.at(address)); err == nil {
			u.sockets[address] = socket
			v.running.Go(func() { v.receive(socket) })
		}
	}
}

// links returns the current capabilities of the links.
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

// encapsulation returns the name of the tunnel's encapsulation, and the bytes that it and IP add to a frame
// (without the outer Ethernet header).
func (t *tunnel) encapsulation() (name string, overhead int) {
	ip := ip4Header
	if netipAddr(t.local).Is6() {
		ip = 40
	}
	switch t.request.(type) {
	case *vxlan.VxlanAddDelTunnelV3:
		return "vxlan", ip + 16
	case *geneve.GeneveAddDelTunnel2:
		return "geneve", ip + 16
	}
	if t.key.key != 0 {
		return "gre", ip + 8
	}
	return "gre", ip + 4
}

// transmit sends frames into a tunnel.
func (v *vpp) transmit(t *tunnel, size, count int) {
	if t.countsSent() {
		v.segment.sent(t.index, uint64(count), uint64(size*count))
	}
	if v.underlay.folder == nil || !v.fib().reaches(t) {
		return
	}
	name, overhead := t.encapsulation()
	f := frames{
		Encapsulation: name, Family: 4, Source: netipAddr(t.local), Destination: netipAddr(t.remote), VNI: t.vni & vniMask, GREKey: t.key.key,
		Size: size, Count: count, Fragments: 1,
	}
	links, packet := v.links(), size+overhead
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

// send sends frames to the router at their destination. Without a listener there, they are lost.
func (u *underlay) send(f frames) {
	data, err := json.Marshal(f)
	if err != nil {
		return
	}
	socket, err := net.DialUnix("unixgram", nil, u.at(f.Destination))
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

// arrive counts frames on the tunnel with their key. A tunnel that is connected with nothing drops them.
func (v *vpp) arrive(f frames) {
	links, found := v.links(), false
	if links.Down {
		return
	}
	for _, ts := range []*tunnels{&v.vxlans, &v.geneves, &v.gres} {
		ts.each(everyIndex, func(t *tunnel) {
			name, overhead := t.encapsulation()
			mirrored := name == f.Encapsulation && netipAddr(t.local) == f.Destination && netipAddr(t.remote) == f.Source && t.vni&vniMask == f.VNI &&
				t.key.key == f.GREKey
			found = found || mirrored
			if !mirrored || !v.interfaces[t.index].adminUp || f.Size+overhead > links.MTU ||
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
			v.segment.received(t.index, uint64(f.Count), uint64(f.Count*f.Size))
			if i := v.interfaces[t.index]; v.connected(i) == nil {
				v.drop(i, uint64(f.Count))
			}
		})
	}
	if !found {
		v.noSuchTunnel(f)
	}
}

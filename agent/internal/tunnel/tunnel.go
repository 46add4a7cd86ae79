// Package tunnel has one file for each kind of transport that carries lines. The file defines which members an
// intent has for the kind, how VPP creates, deletes, lists and distinguishes such tunnels, and which MTU they
// have. A local cross-connect is the kind without a tunnel.
package tunnel

import (
	"cmp"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

// none means "VPP chooses" or "not used". Go's zero value would mean interface 0 or instance 0.
const none = ^uint32(0)

// Encapsulation is the method of transport to the other end.
type Encapsulation string

const (
	L2XC   Encapsulation = "l2xc" // both ends on this router
	VXLAN  Encapsulation = "vxlan"
	GENEVE Encapsulation = "geneve"
	GRE    Encapsulation = "gre" // transparent Ethernet bridging
)

// Tunnel is the backbone's side of an end. The addresses are zero (invalid) for a local cross-connect. VNI is 0
// for kinds without VNIs. GREKey is the key of RFC 2890; it is 0 for a tunnel without a key. Table is the ID of
// the FIB table of the addresses, in the family of the addresses.
type Tunnel struct {
	Encapsulation Encapsulation
	Local, Remote netip.Addr
	VNI           uint32
	GREKey        uint32
	Table         uint32
}

// Kind returns the kind of the tunnel.
func (t Tunnel) Kind() *Kind { return Of(t.Encapsulation) }

// Number returns the VNI or the GRE key, or 0 if the tunnel has neither. No tunnel has both.
func (t Tunnel) Number() uint32 { return t.VNI + t.GREKey }

// Family returns the address family of the tunnel: 4, 6, or 0 for a local cross-connect.
func (t Tunnel) Family() int {
	switch {
	case !t.Local.IsValid():
		return 0
	case t.Local.Is4():
		return 4
	}
	return 6
}

// Path is the path from a tunnel endpoint of this router to a tunnel endpoint of another router.
type Path struct {
	Local  netip.Addr `json:"local"`
	Remote netip.Addr `json:"remote"`
}

func (p Path) String() string { return p.Local.String() + " to " + p.Remote.String() }

// Compare defines the order of paths. A fixed order prevents output that changes from run to run.
func (p Path) Compare(o Path) int {
	return cmp.Or(p.Local.Compare(o.Local), p.Remote.Compare(o.Remote))
}

// Path returns the path of the tunnel. ok is false for a local cross-connect, which has no path.
func (t Tunnel) Path() (path Path, ok bool) { return Path{t.Local, t.Remote}, t.Local.IsValid() }

// Identity has the fields by which VPP distinguishes tunnels. A field that VPP does not use for a kind is zero.
type Identity Tunnel

// Identity returns the fields by which VPP distinguishes the tunnel from other tunnels.
func (t Tunnel) Identity() Identity { return Identity(t.Kind().key(t)) }

// allFields is the function key of kinds that VPP distinguishes by all fields.
func allFields(t Tunnel) Tunnel { return t }

// Found is a tunnel that exists in VPP.
type Found struct {
	Tunnel
	Index uint32
	// Default means that the tunnel has the UDP port and the mode that the agent uses, and that its table is
	// known. Other tunnels do not belong to the agent.
	Default bool
}

// TakesKey reports whether VPP refuses to create a tunnel of the agent with the same Identity.
func (f *Found) TakesKey() bool { return f.Default || !f.Kind().SharesKeys }

// Has reports whether VPP has a message.
type Has func(api.Message) bool

// Kind describes one kind of transport. Its functions send nothing. A kind without a tunnel has only the first
// two fields.
type Kind struct {
	Encapsulation Encapsulation
	// Needs are the messages that the agent needs for this kind.
	Needs []api.Message
	// HasVNI reports that an intent must state a VNI. HasGREKey reports that it may state a GRE key.
	HasVNI, HasGREKey bool

	// Device is VPP's device class of the tunnel's interface.
	Device string
	// NamePrefix is the name that VPP gives to the tunnel's interface, without the number at its end.
	NamePrefix string
	// MTU is the L3 MTU (bytes) of a new tunnel, if VPP drops frames that are longer than the tunnel's MTU. It
	// is 0 if VPP does not compare frames with the tunnel's MTU.
	MTU uint32
	// UpWhenNew reports that a new tunnel is admin up.
	UpWhenNew bool
	// SharesKeys reports that VPP can have a tunnel that is not Default and another tunnel with the same
	// Identity.
	SharesKeys bool
	// TableByCLI reports that only VPP's CLI can create the tunnel in a table other than 0.
	TableByCLI bool
	// Vppcfg is the form of the tunnel in vppcfg's file.
	Vppcfg Vppcfg

	// AddDel returns the message that creates the tunnel if add is true, and otherwise the message that deletes
	// it.
	AddDel func(t Tunnel, add bool) api.Message
	// CLI returns the CLI command that creates the tunnel. With the suffix " del", the command deletes it.
	CLI func(t Tunnel, suffix string) string
	// Refuses returns the reason why VPP cannot have the tunnel although it has the messages of Needs. It
	// returns "" if there is no such reason.
	Refuses func(t Tunnel, greKeys bool) string
	// Dump returns the request for the tunnel of an interface, or for all tunnels of the kind.
	Dump func(has Has, at interface_types.InterfaceIndex) api.Message

	// key returns the tunnel without the fields that VPP does not use to distinguish tunnels.
	key func(Tunnel) Tunnel
	// found returns the tunnel that an answer to Dump describes. It returns nil for answers about other
	// interfaces, and for tunnels that cannot carry a line.
	found func(details api.Message) *Found
}

// Vppcfg is the form of a tunnel in vppcfg's file (version 0.0.7).
type Vppcfg int

const (
	// Unnamed means that vppcfg takes the tunnel for a physical port that has an MTU which VPP does not set.
	Unnamed Vppcfg = iota
	// AsTunnel means that vppcfg lists the tunnel, with each VNI once.
	AsTunnel
	// AsPort means that vppcfg takes the tunnel for a physical port and expects its link MTU.
	AsPort
)

// Kinds is sorted in the order in which the agent lists transports.
var Kinds = []*Kind{l2xcKind, vxlanKind, geneveKind, greKind}

// tunnelKinds are the kinds with tunnels.
var tunnelKinds = Kinds[1:]

// Of returns the kind of an encapsulation, or nil if the encapsulation is unknown.
func Of(encapsulation Encapsulation) *Kind {
	for _, kind := range Kinds {
		if kind.Encapsulation == encapsulation {
			return kind
		}
	}
	return nil
}

// OfDevice returns the kind with this device class; nil if an interface of this class is not a tunnel of a line.
func OfDevice(device string) *Kind {
	for _, kind := range tunnelKinds {
		if kind.Device == device {
			return kind
		}
	}
	return nil
}

// Dumps returns the requests for the tunnel of an interface, or for all tunnels. It omits requests that this
// VPP does not have.
func Dumps(has Has, at interface_types.InterfaceIndex) (dumps []api.Message) {
	for _, kind := range tunnelKinds {
		if dump := kind.Dump(has, at); has(dump) {
			dumps = append(dumps, dump)
		}
	}
	return dumps
}

// FoundIn returns the tunnel that the answer to a request of Dumps describes, or nil.
func FoundIn(details api.Message) *Found {
	for _, kind := range tunnelKinds {
		if found := kind.found(details); found != nil {
			return found
		}
	}
	return nil
}

// inTable returns the option that names the underlay table in a CLI command. Table 0 needs no option.
func inTable(option string, table uint32) string {
	if table == 0 {
		return ""
	}
	return fmt.Sprintf(" %s %d", option, table)
}

// l2xcKind is a local cross-connect: both ends are on this router, and no tunnel connects them.
var l2xcKind = &Kind{
	Encapsulation: L2XC,
	Needs:         []api.Message{&l2.SwInterfaceSetL2Xconnect{}, &l2.L2XconnectDump{}},
	key:           allFields,
}

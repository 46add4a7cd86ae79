// Package tunnel has one file for each kind of tunnel that carries lines. The file defines how VPP creates,
// deletes and lists such a tunnel, and how it differs from the other kinds. Local cross-connects need no
// tunnel.
package tunnel

import (
	"fmt"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
)

// none means "VPP chooses" or "not used". Go's zero value would mean interface 0 or instance 0.
const none = ^uint32(0)

// Found is a tunnel that exists in VPP.
type Found struct {
	intent.Tunnel
	Index uint32
	// Default means that the tunnel has the UDP port and the mode that the agent uses, and that its table is
	// known. Other tunnels do not belong to the agent.
	Default bool
}

// TakesKey reports whether VPP refuses to create a tunnel of the agent with the same intent.Identity.
func (f *Found) TakesKey() bool { return f.Default || !Of(f.Encapsulation).SharesKeys() }

// Has reports whether VPP has a message.
type Has func(api.Message) bool

// Kind is one kind of tunnel. Its methods send nothing.
type Kind interface {
	// Device returns VPP's device class of the tunnel's interface.
	Device() string
	// NewName returns the name of a tunnel in plans until VPP has named it.
	NewName() string
	// AddDel returns the message that creates the tunnel if add is true, and otherwise the message that deletes
	// it.
	AddDel(t intent.Tunnel, add bool) api.Message
	// CLI returns the CLI command that creates the tunnel. With the suffix " del", the command deletes it.
	CLI(t intent.Tunnel, suffix string) string
	// If reply answers a message of AddDel, Made returns the interface that VPP has created.
	Made(reply api.Message) (index interface_types.InterfaceIndex, ok bool)
	// Dump returns the request for the tunnel of an interface, or for all tunnels of the kind.
	Dump(has Has, at interface_types.InterfaceIndex) api.Message
	// Found returns the tunnel that an answer to Dump describes. It returns nil for answers about other
	// interfaces, and for tunnels that cannot carry a line.
	Found(details api.Message) *Found
	// Needs returns the messages that the agent needs for tunnels of this kind.
	Needs() []api.Message
	// Refuses returns the reason why VPP cannot have the tunnel although it has the messages of Needs. It
	// returns "" if there is no such reason.
	Refuses(t intent.Tunnel, greKeys bool) string
	// SharesKeys reports whether VPP can have a tunnel that is not Default and another tunnel with the same
	// intent.Identity.
	SharesKeys() bool
	// MTU returns the L3 MTU (bytes) of a new tunnel, if VPP drops frames that are longer than the tunnel's
	// MTU. It returns 0 if VPP does not compare frames with the tunnel's MTU.
	MTU() uint32
	// UpWhenNew reports whether a new tunnel is admin up.
	UpWhenNew() bool
}

// kinds is sorted in the order in which the agent lists tunnels.
var kinds = []struct {
	intent.Encapsulation
	Kind
}{{intent.VXLAN, vxlanKind{}}, {intent.GENEVE, geneveKind{}}, {intent.GRE, greKind{}}}

// Of returns the kind of an encapsulation; nil for a local cross-connect.
func Of(encapsulation intent.Encapsulation) Kind {
	for _, each := range kinds {
		if each.Encapsulation == encapsulation {
			return each.Kind
		}
	}
	return nil
}

// OfDevice returns the kind with this device class; nil if an interface of this class is not a tunnel of a line.
func OfDevice(device string) Kind {
	for _, each := range kinds {
		if each.Device() == device {
			return each.Kind
		}
	}
	return nil
}

// Dumps returns the requests for the tunnel of an interface, or for all tunnels. It omits requests that this
// VPP does not have.
func Dumps(has Has, at interface_types.InterfaceIndex) (dumps []api.Message) {
	for _, each := range kinds {
		if dump := each.Dump(has, at); has(dump) {
			dumps = append(dumps, dump)
		}
	}
	return dumps
}

// FoundIn returns the tunnel that the answer to a request of Dumps describes, or nil.
func FoundIn(details api.Message) *Found {
	for _, each := range kinds {
		if found := each.Found(details); found != nil {
			return found
		}
	}
	return nil
}

// If reply answers a request to create a tunnel of any kind, Made returns the interface of the tunnel.
func Made(reply api.Message) (index interface_types.InterfaceIndex, ok bool) {
	for _, each := range kinds {
		if index, ok = each.Made(reply); ok {
			return index, true
		}
	}
	return 0, false
}

// HasAll reports whether VPP has all the messages.
func (has Has) HasAll(messages ...api.Message) bool {
	return !slices.ContainsFunc(messages, func(m api.Message) bool { return !has(m) })
}

// inTable returns the option that names the underlay table in a CLI command. Table 0 needs no option.
func inTable(option string, table uint32) string {
	if table == 0 {
		return ""
	}
	return fmt.Sprintf(" %s %d", option, table)
}

package pathwatch

import (
	"maps"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bfd"
	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

// Wanted has the paths to monitor, with the BFD settings.
type Wanted struct {
	Paths []intent.Path // sorted
	intent.Watch
	// Tables maps a path to the table of its tunnels, if this is not table 0.
	Tables map[intent.Path]uint32
}

// Of returns the paths that an intent wants to monitor. The result is empty if the intent does not request
// monitoring.
func Of(in *intent.Intent) Wanted {
	if in.Watch == (intent.Watch{}) {
		return Wanted{}
	}
	wanted := Wanted{Paths: in.Paths(), Watch: in.Watch, Tables: make(map[intent.Path]uint32)}
	for i := range in.Present {
		if path, tunnelled := in.Present[i].Tunnel.Path(); tunnelled && in.Present[i].Tunnel.Table != 0 {
			wanted.Tables[path] = in.Present[i].Tunnel.Table
		}
	}
	return wanted
}

// Equal reports whether w and o have the same paths, settings and tables.
func (w Wanted) Equal(o Wanted) bool {
	return w.Watch == o.Watch && slices.Equal(w.Paths, o.Paths) && maps.Equal(w.Tables, o.Tables)
}

// Without returns a copy of w without these paths.
func (w Wanted) Without(paths Refused) Wanted {
	w.Paths = slices.DeleteFunc(slices.Clone(w.Paths), func(path intent.Path) bool { return paths[path] != "" })
	return w
}

// Op is one change of one session.
type Op struct {
	Path    intent.Path
	Request api.Message
}

// Plan returns the operations that turn the existing sessions into the wanted sessions, in the order of
// execution. It plans no changes of sessions of other clients.
func Plan(wanted Wanted, existing map[intent.Path]Session, ours map[intent.Path]bool) (ops []Op) {
	for _, path := range slices.SortedFunc(maps.Keys(ours), intent.Path.Compare) {
		if _, exists := existing[path]; exists && !slices.Contains(wanted.Paths, path) {
			ops = append(ops, Op{path, deletion(path)})
		}
	}
	for _, path := range wanted.Paths {
		session, exists := existing[path]
		switch {
		case !exists:
			ops = append(ops, Op{path, creation(path, wanted.Watch)})
		case !ours[path]:
		case session.Secured:
			ops = append(ops, Op{path, deletion(path)}, Op{path, creation(path, wanted.Watch)})
		case !session.matches(wanted.Watch):
			ops = append(ops, Op{path, modification(path, wanted.Watch)})
		}
		if exists && ours[path] && session.State == bfd.BFD_STATE_API_ADMIN_DOWN {
			ops = append(ops, Op{path, &bfd.BfdUDPSessionSetFlags{
				SwIfIndex: multihop, LocalAddr: vpp.IPAddress(path.Local), PeerAddr: vpp.IPAddress(path.Remote),
				Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP,
			}})
		}
	}
	return ops
}

func creation(path intent.Path, watch intent.Watch) *bfd.BfdUDPAdd {
	return &bfd.BfdUDPAdd{
		SwIfIndex: multihop, LocalAddr: vpp.IPAddress(path.Local), PeerAddr: vpp.IPAddress(path.Remote),
		DesiredMinTx: interval(watch), RequiredMinRx: interval(watch), DetectMult: uint8(watch.Multiplier),
	}
}

func modification(path intent.Path, watch intent.Watch) *bfd.BfdUDPMod {
	return &bfd.BfdUDPMod{
		SwIfIndex: multihop, LocalAddr: vpp.IPAddress(path.Local), PeerAddr: vpp.IPAddress(path.Remote),
		DesiredMinTx: interval(watch), RequiredMinRx: interval(watch), DetectMult: uint8(watch.Multiplier),
	}
}

func deletion(path intent.Path) *bfd.BfdUDPDel {
	return &bfd.BfdUDPDel{SwIfIndex: multihop, LocalAddr: vpp.IPAddress(path.Local), PeerAddr: vpp.IPAddress(path.Remote)}
}

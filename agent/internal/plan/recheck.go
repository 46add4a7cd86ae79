package plan

import (
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
)

// Recheck looks at a newer snapshot and returns why the operation must not be sent after all, or nil.
// Deletes must still meet the very interface that was planned for, because VPP gives indices and names
// out again and its delete messages go by key. Creates must still find their key free: VPP refuses a
// second sub-interface with the same VLAN and stops the traffic of the first one.
func Recheck(op Op, now *observe.Snapshot) *Reason {
	switch a := op.Action.(type) {
	case DeleteSub:
		return recheckTag(a.Sub, a.Tag, now)
	case SetTag:
		if op.Stage == Delete {
			return recheckTag(a.Interface, a.Was, now)
		}
	case DeleteTunnel:
		if reason := recheckTag(a.Interface, a.Tag, now); reason != nil {
			return reason
		}
		for _, t := range now.Tunnels {
			if t.Index == a.Interface.Index && t.Tunnel == a.Tunnel && t.Default {
				return nil
			}
		}
		return changed(a.Interface)
	case CreateSub:
		return recheckSub(a, now)
	case CreateTunnel:
		for _, t := range now.Tunnels {
			if (t.Default || t.Encapsulation == intent.GENEVE) && t.Identity() == a.Tunnel.Identity() {
				return taken(now, t.Index)
			}
		}
	}
	return nil
}

func recheckTag(ref Ref, tag string, now *observe.Snapshot) *Reason {
	if i := now.ByIndex(ref.Index); i == nil || i.Name != ref.Name || i.Tag != tag {
		return changed(ref)
	}
	return nil
}

func recheckSub(a CreateSub, now *observe.Snapshot) *Reason {
	port := now.ByIndex(a.Port.Index)
	if port == nil || port.Name != a.Port.Name {
		return changed(a.Port)
	}
	wanted := selects(port.Index, a.Access)
	for _, sub := range now.Subs(port.Index) {
		is := selection{sub.Sup, sub.Sub.Tags, sub.Sub.Dot1ad, sub.Sub.Outer, sub.Sub.Inner}
		if sub.Sub.ID == a.ID || !sub.Sub.Wide && is == wanted {
			return taken(now, sub.Index)
		}
	}
	return nil
}

func changed(ref Ref) *Reason {
	return pending("verify_mismatch", ref.Name, "%s changed while the plan was carried out", ref.Name)
}

func taken(now *observe.Snapshot, index uint32) *Reason {
	i := now.ByIndex(index)
	if i == nil {
		return pending("verify_mismatch", "", "what is to be created is there by now")
	}
	return pending("verify_mismatch", Describe(i), "%s stands where another one is to be created", i.Name)
}

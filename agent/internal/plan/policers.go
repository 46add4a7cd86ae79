package plan

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/policer"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
)

// If VPP gets two requests to apply a policer to an interface, it polices the interface's frames twice. VPP
// also stores the index of the interface with an applied policer. The agent therefore applies a policer only
// to an interface on which no policer works, and removes it before the interface leaves L2 or is deleted.

type (
	// AddPolicer creates a policer.
	AddPolicer struct {
		Name      string
		Bandwidth intent.Bandwidth
	}
	// UpdatePolicer changes a policer in place; its counters restart from zero.
	UpdatePolicer struct {
		Name      string
		Index     uint32
		Bandwidth intent.Bandwidth
	}
	// DeletePolicer deletes a policer that is not applied anywhere.
	DeletePolicer struct {
		Name  string
		Index uint32
	}
	// SetPolicing applies a policer to the frames received on an interface, or stops applying it.
	SetPolicing struct {
		Policer   string
		Interface Ref
		On        bool
	}
)

func (a AddPolicer) Target() Ref    { return policerRef(a.Name) }
func (a UpdatePolicer) Target() Ref { return policerRef(a.Name) }
func (a DeletePolicer) Target() Ref { return policerRef(a.Name) }
func (a SetPolicing) Target() Ref   { return a.Interface }

// policerRef returns a Ref with the policer's name. The Ref has no index, because a policer is not an
// interface.
func policerRef(name string) Ref { return Ref{Index: observe.NoIndex, Name: name} }

func (a AddPolicer) Encode(Created) api.Message {
	return &policer.PolicerAdd{Name: a.Name, Infos: observe.PolicerConfig(a.Bandwidth)}
}

func (a AddPolicer) CLI() string {
	return fmt.Sprintf("policer add name %s %s", a.Name, policerCLI(a.Bandwidth))
}

func (a UpdatePolicer) Encode(Created) api.Message {
	return &policer.PolicerUpdate{PolicerIndex: a.Index, Infos: observe.PolicerConfig(a.Bandwidth)}
}

func (a UpdatePolicer) CLI() string {
	return fmt.Sprintf("configure policer index %d %s", a.Index, policerCLI(a.Bandwidth))
}

func policerCLI(b intent.Bandwidth) string {
	c := observe.PolicerConfig(b)
	rates := fmt.Sprintf("type 1r2c rate kbps cir %d cb %d", c.Cir, c.Cb)
	if b.EIR > 0 {
		rates = fmt.Sprintf("type 2r3c-2698 rate kbps cir %d cb %d eir %d eb %d", c.Cir, c.Cb, c.Eir, c.Eb)
	}
	return rates + " conform-action transmit exceed-action transmit violate-action drop"
}

func (a DeletePolicer) Encode(Created) api.Message { return &policer.PolicerDel{PolicerIndex: a.Index} }

func (a DeletePolicer) CLI() string { return fmt.Sprintf("policer del index %d", a.Index) }

// Encode uses the variant by name, because VPP's replies to the variants by index have the number of another message.
func (a SetPolicing) Encode(c Created) api.Message {
	return &policer.PolicerInput{Name: a.Policer, SwIfIndex: c.at(a.Interface), Apply: a.On}
}

func (a SetPolicing) CLI() string {
	if a.On {
		return fmt.Sprintf("policer input name %s %s", a.Policer, a.Interface.Name)
	}
	return fmt.Sprintf("policer input name %s unapply %s", a.Policer, a.Interface.Name)
}

// policeable reports whether this VPP can enforce a profile on the end's access.
func (d *differ) policeable(end intent.End) bool {
	if d.Policing.Reach() == observe.SubInterfacePolicing {
		return true
	}
	port := d.ByName(end.Access.Interface)
	return d.Policing != observe.NoPolicing && end.Access.Tagging == intent.Untagged && port != nil && d.NodePolices(port)
}

// setPolicer plans the operations that bring the end's policer to its intended state. It records in policed
// whether VPP enforces the profile already.
func (b *operationBuilder) setPolicer(end intent.End, access Ref) {
	if len(b.Policers) == 0 && len(b.Tables) == 0 && end.Bandwidth == (intent.Bandwidth{}) {
		return
	}
	before := len(b.ops)
	name := ownership.PolicerName(end.Key)
	existing := b.Policers[name]
	if end.Bandwidth == (intent.Bandwidth{}) || !b.policeable(end) {
		b.removePolicer(end.Key, "nothing is to be policed")
		return
	}
	switch want := observe.PolicerConfig(end.Bandwidth); {
	case existing == nil:
		b.add(end.Key, Create, 2, AddPolicer{name, end.Bandwidth},
			Drift{Field: "policer", Desired: policerCLI(end.Bandwidth)}, "the policer is missing")
	case existing.Config != want:
		b.add(end.Key, Set, 1, UpdatePolicer{name, existing.Index, end.Bandwidth},
			Drift{Field: "policer", Desired: policerCLI(end.Bandwidth), Actual: fmt.Sprintf("%+v", existing.Config)},
			"the bandwidth profile changed")
	}
	confirmed := b.Policed
	if b.byClassifier(end) {
		if i := b.ByIndex(access.Index); i != nil {
			b.takeNodeOff(end.Key, i, "frames received on this port do not reach the policer node")
		}
		b.setClassifier(end, access, existing)
		confirmed = b.Classified
	} else {
		b.removeTables(end.Key, observe.NoIndex, "the policer node gets all frames of the port")
		b.setPolicing(end, access)
	}
	if len(b.ops) == before && !end.Testing && confirmed[access.Index] &&
		(!b.byClassifier(end) || b.ReceivedByOne(b.ByName(end.Access.Interface).Index)) {
		b.policed[end.Key] = true
	}
}

// setPolicing applies the end's policer to the access. During a test it removes the policer from the access.
func (b *operationBuilder) setPolicing(end intent.End, access Ref) {
	if end.Testing { // an end under test carries no customer frames, and a policer works only in L2
		if i := b.ByIndex(access.Index); i != nil {
			b.takePolicerOff(end.Key, i, "the access is apart from its tunnel while that is tested")
		}
		return
	}
	on := b.policedByUs(access.Index) && !b.unpoliced[access.Index]
	if on && b.leftL2(access.Index) {
		// When a sub-interface leaves L2, VPP stops policing it, but still counts the policer as applied.
		b.takePolicerOff(end.Key, b.ByIndex(access.Index), "the policer stopped working when the access left L2")
		on = false
	}
	if !on {
		b.add(end.Key, Police, 0, SetPolicing{ownership.PolicerName(end.Key), access, true},
			Drift{Field: "policed", Desired: "true", Actual: "false"}, "the customer's frames are limited to the profile")
	}
}

// policedByUs reports whether the agent's policer works on an interface. VPP does not report which policer
// works on an interface. A working policer can be the agent's policer only if the interface belongs to an end
// that has a policer. If VPP does not even report whether a policer works on the interface, policedByUs
// assumes that the end's policer has been applied since its creation.
func (d *differ) policedByUs(index uint32) bool {
	h := d.byIndex[index]
	return (d.Policed[index] || d.PolicedUnknown[index]) && h != nil && d.Policers[ownership.PolicerName(h.End)] != nil
}

func (b *operationBuilder) leftL2(index uint32) bool {
	_, connected := b.Connects[index]
	return !connected || b.detached[index]
}

// takePolicerOff stops policing the frames received on an interface of the end.
func (b *operationBuilder) takePolicerOff(end intent.Key, i *observe.Interface, why string) {
	b.takeTableOff(end, i, why)
	b.takeNodeOff(end, i, why)
}

// takeNodeOff stops the end's policer on an interface that VPP's policer node polices.
func (b *operationBuilder) takeNodeOff(end intent.Key, i *observe.Interface, why string) {
	name := ownership.PolicerName(end)
	if !b.policedByUs(i.Index) || b.unpoliced[i.Index] {
		return
	}
	b.unpoliced[i.Index] = true
	b.add(end, Detach, -1, SetPolicing{name, RefTo(i), false}, Drift{Field: "policed", Desired: "false", Actual: "true"}, "%s", why)
}

// removePolicer stops and deletes the end's policer, and its classify table.
func (b *operationBuilder) removePolicer(end intent.Key, why string) {
	b.removeTables(end, observe.NoIndex, why)
	name := ownership.PolicerName(end)
	existing := b.Policers[name]
	if existing == nil {
		return
	}
	for h := range b.interfacesOf(end) {
		if h.Tunnel == nil {
			b.takePolicerOff(end, h.Interface, why)
		}
	}
	b.add(end, Delete, 2, DeletePolicer{name, existing.Index}, Drift{Field: "policer", Desired: "", Actual: name}, "%s", why)
}

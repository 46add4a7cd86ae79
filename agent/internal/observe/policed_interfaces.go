package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/ownership"
)

// shown is VPP's reply about a feature of an interface.
type shown int

const (
	// unknown means that VPP refused the query, or replied about another interface. The feature may be on or
	// off.
	unknown shown = iota
	off
	on
)

// takePoliced finds out on which of these interfaces a policer works on received frames.
func (s *Snapshot) takePoliced(ctx context.Context, session Session, of []*Interface) error {
	candidates := s.mayBePoliced(of)
	var policed []shown
	var err error
	if session.Has(&feature.FeatureIsEnabled{}) {
		policed, err = s.enabledOn(ctx, session, candidates)
	} else {
		policed, err = shownOn(ctx, session, candidates, portArc, policerNode)
	}
	if err != nil {
		return err
	}
	for n, i := range candidates {
		note(s.Policed, s.PolicedUnknown, i.Index, policed[n])
	}
	return nil
}

// note stores VPP's reply about an interface, and replaces an earlier reply.
func note(yes, unclear map[uint32]bool, index uint32, answer shown) {
	delete(yes, index)
	delete(unclear, index)
	switch answer {
	case on:
		yes[index] = true
	case unknown:
		unclear[index] = true
	}
}

// usedByLines returns the given interfaces, but omits a port if no line uses the port and it was not policed
// in the earlier observation. VPP stops its workers for each query about a port, and a router may have
// thousands of such ports. A port counts as used if it has the agent's tag, if the agent claims it, or if any
// client has cross-connected it. ReadPortUses reads the ports that a line will use.
func (s *Snapshot) usedByLines(of []*Interface, claimed []string) []*Interface {
	sentTo := make(map[uint32]bool, len(s.Connects))
	for _, to := range s.Connects {
		sentTo[to] = true
	}
	return slices.DeleteFunc(slices.Clone(of), func(i *Interface) bool {
		_, connected := s.Connects[i.Index]
		used := connected || sentTo[i.Index] || isOwned(i) || slices.Contains(claimed, i.Name)
		return !i.IsSub() && !used && !s.Policed[i.Index] && !s.PolicedUnknown[i.Index]
	})
}

func (s *Snapshot) mayBePoliced(of []*Interface) []*Interface {
	var may []*Interface
	for _, i := range of {
		if s.TunnelAt(i.Index) != nil || i.IsSub() && (s.Policing != SubInterfacePolicing || len(s.Policers) == 0 || !isOwned(i)) {
			continue
		}
		may = append(may, i)
	}
	return may
}

// enabledOn returns, for each interface, whether VPP's policer node is enabled. It uses feature_is_enabled,
// which exists in VPP 25.06 and later. If the query fails, VPP also replies yes, because it stores an error
// code in a boolean. So the agent believes a yes only if VPP replies no for the arc's last node, which is
// never enabled.
func (s *Snapshot) enabledOn(ctx context.Context, session Session, of []*Interface) ([]shown, error) {
	arc, never := portArc, "ethernet-input"
	if s.Policing == SubInterfacePolicing {
		arc, never = "ip4-unicast", "ip4-lookup"
	}
	var queries []api.Message
	for _, i := range of {
		for _, name := range []string{policerNode, never} {
			queries = append(queries, &feature.FeatureIsEnabled{
				ArcName: arc, FeatureName: name, SwIfIndex: interface_types.InterfaceIndex(i.Index),
			})
		}
	}
	answers, err := session.Calls(ctx, queries)
	if err != nil {
		return nil, err
	}
	says := func(at int) bool {
		reply, ok := answers[at].(*feature.FeatureIsEnabledReply)
		return ok && reply.Retval == 0 && reply.IsEnabled
	}
	policed := make([]shown, len(of))
	for n := range of {
		policed[n] = off
		if says(2*n) && !says(2*n+1) {
			policed[n] = on
		}
	}
	return policed, nil
}

const (
	// portArc has the features of frames that a physical port receives.
	portArc     = "device-input"
	policerNode = "policer-input"
)

// shownOn returns, for each interface, whether the output of "show interface features" has this node in this
// arc. Only the CLI shows whether classify tables work. Before VPP 25.06, only the CLI shows whether policers
// on ports work.
//
// The command names an interface by its index, because VPP reads a name only up to its first dot
// (unformat_vnet_sw_interface in vnet/interface_format.c). So VPP would not find a port "eth0.5", or would
// find another interface instead. The output begins with the name of the interface. If this name is wrong,
// shownOn ignores the output.
//
// shownOn returns an error if the output does not have the arc. The state is then unknown, and the agent
// could apply a policer twice.
func shownOn(ctx context.Context, session Session, of []*Interface, arc, node string) ([]shown, error) {
	var queries []api.Message
	for _, i := range of {
		queries = append(queries, &vlib.CliInband{Cmd: fmt.Sprintf("show interface features %d", i.Index)})
	}
	answers, err := session.Calls(ctx, queries)
	if err != nil {
		return nil, err
	}
	works := make([]shown, len(of))
	for n, i := range of {
		reply, ok := answers[n].(*vlib.CliInbandReply)
		if !ok || reply.Retval != 0 || !strings.Contains(reply.Reply, "Feature paths configured on "+i.Name+"...") {
			continue
		}
		features, found := featuresOn(reply.Reply, arc)
		if !found {
			return nil, fmt.Errorf("VPP does not show the features of %s: %q", i.Name, reply.Reply)
		}
		works[n] = off
		if features[node] {
			works[n] = on
		}
	}
	return works, nil
}

// featuresOn parses the output of vnet_interface_features_show (feature.c): each arc's name with a colon is
// on a separate line, followed by indented lines with the nodes of its features. found reports whether the
// output has the arc.
func featuresOn(text, arc string) (features map[string]bool, found bool) {
	features = make(map[string]bool)
	within := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch name, indented := strings.CutPrefix(line, "  "); {
		case indented && within:
			features[strings.TrimLeft(name, " ")] = true // L2 features have a larger indentation
		case !indented && line != "":
			within = line == arc+":"
			found = found || within
		}
	}
	return features, found
}

// isOwned reports whether the interface has the agent's tag. It is false for an interface that the agent
// could not tag before a crash. Such an interface has no policer yet.
func isOwned(i *Interface) bool {
	_, ours := ownership.ParseTag(i.Tag)
	return ours
}

// IsPoliced reports whether any policer works on the received frames of a sub-interface.
func (s *Snapshot) IsPoliced(ctx context.Context, session Session, i *Interface) (bool, error) {
	if !i.IsSub() || s.Policing != SubInterfacePolicing {
		return false, nil
	}
	policed, err := s.enabledOn(ctx, session, []*Interface{i})
	if err != nil {
		return false, fmt.Errorf("observe policing of %s: %w", i.Name, err)
	}
	return policed[0] == on, nil
}

// ReadSubInterfacePolicing reads whether any policer works on the received frames of these sub-interfaces. It
// returns a copy of s with the result.
func ReadSubInterfacePolicing(ctx context.Context, session Session, s *Snapshot, subs []*Interface) (*Snapshot, error) {
	if len(subs) == 0 || s.Policing != SubInterfacePolicing {
		return s, nil
	}
	policed, err := s.enabledOn(ctx, session, subs)
	if err != nil {
		return nil, fmt.Errorf("observe the policing of sub-interfaces to adopt: %w", err)
	}
	with := *s
	with.Policed = make(map[uint32]bool, len(s.Policed)+len(subs))
	maps.Copy(with.Policed, s.Policed)
	for n, i := range subs {
		if policed[n] == on {
			with.Policed[i.Index] = true
		}
	}
	return &with, nil
}

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

// shown is what VPP says about a feature of an interface.
type shown int

const (
	// unknown: VPP refused the question, or answered about another interface. It is neither yes nor no.
	unknown shown = iota
	off
	on
)

// takePoliced asks on which interfaces a policer works on input.
func (s *Snapshot) takePoliced(ctx context.Context, session Session, of []*Interface) error {
	asked := s.mayBePoliced(of)
	var policed []shown
	var err error
	if session.Has(&feature.FeatureIsEnabled{}) {
		policed, err = s.enabledOn(ctx, session, asked)
	} else {
		policed, err = shownOn(ctx, session, asked, portArc, policerNode)
	}
	if err != nil {
		return err
	}
	for n, i := range asked {
		note(s.Policed, s.PolicedUnknown, i.Index, policed[n])
	}
	return nil
}

// note keeps an answer about an interface, instead of an earlier one.
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

// usedByLines leaves out the ports that no line uses: VPP stops its workers for each question, and a router may have thousands
// of such ports. A line uses a port that bears the agent's tag, that the agent claims, or that is cross-connected, also by
// somebody else. ReadPortUses reads ports that a line is to use and does not use yet.
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

// enabledOn asks feature_is_enabled, which is there from 25.06 on. VPP answers yes also when it cannot tell (it keeps
// an error code in a boolean), so a yes counts only if VPP says no about the arc's last node, which is never enabled.
func (s *Snapshot) enabledOn(ctx context.Context, session Session, asked []*Interface) ([]shown, error) {
	arc, never := portArc, "ethernet-input"
	if s.Policing == SubInterfacePolicing {
		arc, never = "ip4-unicast", "ip4-lookup"
	}
	var questions []api.Message
	for _, i := range asked {
		for _, name := range []string{policerNode, never} {
			questions = append(questions, &feature.FeatureIsEnabled{
				ArcName: arc, FeatureName: name, SwIfIndex: interface_types.InterfaceIndex(i.Index),
			})
		}
	}
	answers, err := session.Calls(ctx, questions)
	if err != nil {
		return nil, err
	}
	says := func(at int) bool {
		reply, ok := answers[at].(*feature.FeatureIsEnabledReply)
		return ok && reply.Retval == 0 && reply.IsEnabled
	}
	policed := make([]shown, len(asked))
	for n := range asked {
		policed[n] = off
		if says(2*n) && !says(2*n+1) {
			policed[n] = on
		}
	}
	return policed, nil
}

const (
	// portArc has the features of what comes in from a physical port.
	portArc     = "device-input"
	policerNode = "policer-input"
)

// shownOn reads "show interface features": of policers on ports before 25.06, and of classify tables, only the CLI shows
// whether they work. The question names an interface by its index: VPP reads a name up to its first dot
// (unformat_vnet_sw_interface in vnet/interface_format.c), so a port "eth0.5" has no name there, or that of another interface.
// The answer begins with the name, and counts only if that is the interface's own.
// Error for a text that does not have the arc: what works there is then unknown, and applying a policer could be the second time.
func shownOn(ctx context.Context, session Session, asked []*Interface, arc, node string) ([]shown, error) {
	var questions []api.Message
	for _, i := range asked {
		questions = append(questions, &vlib.CliInband{Cmd: fmt.Sprintf("show interface features %d", i.Index)})
	}
	answers, err := session.Calls(ctx, questions)
	if err != nil {
		return nil, err
	}
	works := make([]shown, len(asked))
	for n, i := range asked {
		reply, ok := answers[n].(*vlib.CliInbandReply)
		if !ok || reply.Retval != 0 || !strings.Contains(reply.Reply, "Feature paths configured on "+i.Name+"...") {
			continue
		}
		features, told := featuresOn(reply.Reply, arc)
		if !told {
			return nil, fmt.Errorf("the features of %s are not told: %q", i.Name, reply.Reply)
		}
		works[n] = off
		if features[node] {
			works[n] = on
		}
	}
	return works, nil
}

// featuresOn reads what vnet_interface_features_show (feature.c) prints: each arc's name with a colon on a line of its
// own, and below it, indented, the node of each feature. told: the arc is named.
func featuresOn(text, arc string) (features map[string]bool, told bool) {
	features = make(map[string]bool)
	within := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch name, indented := strings.CutPrefix(line, "  "); {
		case indented && within:
			features[strings.TrimLeft(name, " ")] = true // those of L2 stand further right
		case !indented && line != "":
			within = line == arc+":"
			told = told || within
		}
	}
	return features, told
}

// isOwned: by its tag. What a crash left without one has no policer yet.
func isOwned(i *Interface) bool {
	_, ours := ownership.ParseTag(i.Tag)
	return ours
}

// IsPoliced asks whether a policer works on what comes in from a sub-interface, whoever's it is.
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

// AskPolicingOf asks whether policers work on what comes in from these sub-interfaces, whoever's they are, and returns a
// snapshot that says so.
func AskPolicingOf(ctx context.Context, session Session, s *Snapshot, subs []*Interface) (*Snapshot, error) {
	if len(subs) == 0 || s.Policing != SubInterfacePolicing {
		return s, nil
	}
	policed, err := s.enabledOn(ctx, session, subs)
	if err != nil {
		return nil, fmt.Errorf("observe the policing of what is to be adopted: %w", err)
	}
	told := *s
	told.Policed = make(map[uint32]bool, len(s.Policed)+len(subs))
	maps.Copy(told.Policed, s.Policed)
	for n, i := range subs {
		if policed[n] == on {
			told.Policed[i.Index] = true
		}
	}
	return &told, nil
}

package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/policer"
	"go.fd.io/govpp/binapi/policer_types"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/vpp"
)

// Policing says where a VPP can police received frames.
type Policing string

const (
	NoPolicing           Policing = "none"
	PortPolicing         Policing = "port"         // physical ports, so whole-port services only
	SubInterfacePolicing Policing = "subinterface" // L2 sub-interfaces and ports
	ClassifierPolicing   Policing = "classifier"   // the same as SubInterfacePolicing, with classify tables for frames that the policer node does not receive
)

// Reach returns where VPP can police, by any method.
func (p Policing) Reach() Policing {
	if p == ClassifierPolicing {
		return SubInterfacePolicing
	}
	return p
}

// Policer is one of the agent's policers.
type Policer struct {
	End    intent.Key
	Index  uint32 // NoIndex if unknown
	Config policer_types.PolicerConfig
}

// policingOf returns where and how a VPP can police. It uses VPP's message table and VPP's version, because
// one difference does not show in the message table. Up to 26.02, policer_input works on the device-input
// arc, which L2 sub-interfaces do not use. From 26.06 on, it also works in the L2 input features
// (policer_op.c). Before 26.06, only classify tables can lead the frames of L2 sub-interfaces to policers.
func policingOf(session Session) Policing {
	lacking := vpp.Missing(session.Has,
		&policer.PolicerAdd{}, &policer.PolicerUpdate{}, &policer.PolicerDel{}, &policer.PolicerDumpV2{}, &policer.PolicerInput{})
	switch {
	case lacking != "":
		return NoPolicing
	case atLeast(session.Info().Version, 26, 6):
		return SubInterfacePolicing
	case vpp.Missing(session.Has, classifierMessages...) != "":
		return PortPolicing
	}
	return ClassifierPolicing
}

// hostInterface is the device class of af_packet's ports.
const hostInterface = "af-packet"

// deviceInput lists the device classes whose frames pass the arc device-input, which has the policer node.
// Their input nodes are siblings of device-input and start its features (vnet_feature_start_device_input in
// VPP's sources of 25.10).
//
// The list does not contain bonds, because their members receive the frames. It also does not contain
// loopbacks and ports of the device API, which have the arc port-rx-eth (vnet/dev/port.c).
var deviceInput = map[string]bool{
	"dpdk": true, hostInterface: true, "memif": true, "virtio": true, "tuntap": true, "vhost-user": true, "RDMA interface": true,
	"VMXNET3 interface": true, "Adaptive Virtual Function (AVF) interface": true, "AF_XDP interface": true, "pg": true,
}

// NodePolices reports whether the policer node receives the frames of this port, in a VPP that has policers.
// For every other port, VPP reports that the policer works although the policer node receives no frame.
func (s *Snapshot) NodePolices(port *Interface) bool {
	return s.Policing == SubInterfacePolicing || deviceInput[port.Device] && (port.Device != hostInterface || s.Supported[CanPoliceHostInterfaces])
}

// atLeast reports whether the leading "YY.MM" of a version is the given month or a later month. If the
// version does not begin with "YY.MM", atLeast returns false.
func atLeast(version string, year, month int) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 2)
	if len(parts) != 2 || len(parts[1]) < 2 {
		return false
	}
	y, errY := strconv.Atoi(parts[0])
	m, errM := strconv.Atoi(parts[1][:2])
	return errY == nil && errM == nil && (y > year || y == year && m >= month)
}

// PolicerConfig converts a bandwidth profile to the configuration of a VPP policer. A profile with only a
// committed rate gets one rate and two colours. Other profiles get two rates and three colours. VPP counts in
// kbit/s, and fractions are rounded up.
//
// VPP's data plane implements only RFC 2698, even if a policer's type is RFC 4115 (vnet_police_packet in
// police.h). In RFC 2698, the second bucket is for the peak rate, and conforming frames also use its tokens.
// VPP refuses a peak rate below the committed rate. So the peak rate is CIR + EIR: unused committed tokens
// become excess tokens (MEF 10.4 with coupling flag 1).
func PolicerConfig(b intent.Bandwidth) policer_types.PolicerConfig {
	c := policer_types.PolicerConfig{
		Cir: kbps(b.CIR), Cb: uint64(b.CBS), RateType: policer_types.SSE2_QOS_RATE_API_KBPS,
		RoundType: policer_types.SSE2_QOS_ROUND_API_TO_CLOSEST, Type: policer_types.SSE2_QOS_POLICER_TYPE_API_1R2C,
		ConformAction: policer_types.Sse2QosAction{Type: policer_types.SSE2_QOS_ACTION_API_TRANSMIT},
		ExceedAction:  policer_types.Sse2QosAction{Type: policer_types.SSE2_QOS_ACTION_API_TRANSMIT},
		ViolateAction: policer_types.Sse2QosAction{Type: policer_types.SSE2_QOS_ACTION_API_DROP},
	}
	if b.EIR > 0 {
		c.Eir, c.Eb, c.Type = kbps(b.CIR+b.EIR), uint64(b.CBS+b.EBS), policer_types.SSE2_QOS_POLICER_TYPE_API_2R3C_RFC_2698
	}
	return c
}

func kbps(bps int64) uint32 { return uint32((bps + 999) / 1000) }

// takeKnownPolicers does the same as takePolicers if the agent has created no policer since known was read.
// If there are many policers, it reads them by index, in portions.
func (s *Snapshot) takeKnownPolicers(ctx context.Context, session Session, known map[string]*Policer, of []*Interface) error {
	var requests []api.Message
	for _, p := range known {
		if p.Index != NoIndex {
			requests = append(requests, &policer.PolicerDumpV2{PolicerIndex: p.Index})
		}
	}
	if len(requests) <= wholePolicers || len(requests) < len(known) {
		return s.takePolicers(ctx, session, known, of)
	}
	return s.takePolicers(ctx, session, known, of, requests...)
}

// takePolicers reads the agent's policers, and finds out on which of these interfaces a policer works. known
// has the policers of an earlier observation, with their indices. Without requests for single policers, takePolicers
// requests all.
func (s *Snapshot) takePolicers(
	ctx context.Context, session Session, known map[string]*Policer, of []*Interface, requests ...api.Message,
) error {
	if s.Policing == NoPolicing {
		return nil
	}
	if len(requests) == 0 {
		requests = []api.Message{&policer.PolicerDumpV2{PolicerIndex: NoIndex}}
	}
	missing := 0
	answers, err := inPortions(ctx, session, requests)
	for _, answer := range answers {
		m, is := answer.(*policer.PolicerDetails)
		if !is {
			continue
		}
		name := vpp.Text(m.Name)
		end, ours := ownership.ParsePolicerName(name)
		if !ours {
			continue
		}
		p := &Policer{End: end, Index: NoIndex, Config: configOf(m)}
		if before := known[name]; before != nil && before.Index != NoIndex {
			p.Index = before.Index
		} else {
			missing++
		}
		s.Policers[name] = p
	}
	if err == nil {
		err = s.numberPolicers(ctx, session, missing)
	}
	if err == nil {
		err = s.takePoliced(ctx, session, of)
	}
	return err
}

func configOf(m *policer.PolicerDetails) policer_types.PolicerConfig {
	return policer_types.PolicerConfig{
		Cir: m.Cir, Eir: m.Eir, Cb: m.Cb, Eb: m.Eb, RateType: m.RateType, RoundType: m.RoundType, Type: m.Type, ColorAware: m.ColorAware,
		ConformAction: m.ConformAction, ExceedAction: m.ExceedAction, ViolateAction: m.ViolateAction,
	}
}

const (
	probeBlock = 64
	// emptyBlocks is the number of successive blocks of free indices after which the search for policers ends.
	emptyBlocks = 64
)

// numberPolicers finds the indices of the policers whose index is unknown. It queries each index until it has
// found the given number of policers. Deletions and updates of a policer need its index, but no dump reports
// the index.
func (s *Snapshot) numberPolicers(ctx context.Context, session Session, missing int) error {
	for first, empty := uint32(0), 0; missing > 0 && empty < emptyBlocks; first += probeBlock {
		empty++
		var probes []api.Message
		for index := range uint32(probeBlock) {
			probes = append(probes, &policer.PolicerDumpV2{PolicerIndex: first + index})
		}
		err := session.DumpEach(ctx, probes, func(at int, msg api.Message) {
			m, ok := msg.(*policer.PolicerDetails)
			if !ok {
				return
			}
			empty = 0
			if p := s.Policers[vpp.Text(m.Name)]; p != nil && p.Index == NoIndex {
				p.Index = first + uint32(at)
				missing--
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

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

package vppsim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/binapi/classify"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/policer"
	"go.fd.io/govpp/binapi/policer_types"
)

// policers is VPP's pool of policers, with the interfaces that have a policer.
type policers struct {
	pool[namedPolicer]
	byName  map[string]uint32
	applied map[uint32]*applied // by sw_if_index
	reach   uint32              // VPP can look up features of interfaces with an index below this number
}

type namedPolicer struct {
	name   string
	config policer_types.PolicerConfig
}

// applied is the state of an interface after policer_input has applied a policer to it.
type applied struct {
	policer uint32
	times   int  // how often the policer was applied; frames are policed once per application
	l2      bool // from 26.06 on: whether the L2 feature is on; it is lost when the interface moves to L3
}

// policesSubInterfaces reports whether this release polices frames of sub-interfaces. From 26.06 on,
// policing is also an L2 input feature. In earlier releases, policing is only on the device-input arc, and
// frames of sub-interfaces do not pass this arc (policer_input in policer_op.c, formerly policer.c).
func (v *vpp) policesSubInterfaces() bool { return v.config.from(26, 6) }

// sane reports whether VPP accepts a configuration (x86_pol_compute_hw_params in xlate.c). It knows only the
// types of policers that the agent uses. Some types have one rate with a bucket. The other types have a
// committed rate and a peak rate, each with a bucket. The peak rate must not be lower than the committed
// rate.
func sane(c policer_types.PolicerConfig) bool {
	switch c.Type {
	case policer_types.SSE2_QOS_POLICER_TYPE_API_1R2C:
		return c.Cir > 0 && c.Cb > 0 && c.Eir == 0 && c.Eb == 0
	case policer_types.SSE2_QOS_POLICER_TYPE_API_2R3C_RFC_2698, policer_types.SSE2_QOS_POLICER_TYPE_API_2R3C_RFC_4115:
		return c.Cir > 0 && c.Cb > 0 && c.Eir >= c.Cir && c.Eb > 0
	}
	return false
}

func (v *vpp) policerAdd(m *policer.PolicerAdd, reply *policer.PolicerAddReply) {
	reply.PolicerIndex = none
	name := strings.TrimRight(m.Name, "\x00")
	switch _, taken := v.policers.byName[name]; {
	case taken:
		reply.Retval = retvalValueExists
	case !sane(m.Infos):
		reply.Retval = retvalInvalidValue
	default:
		reply.PolicerIndex = v.policers.add(&namedPolicer{name, m.Infos})
		v.policers.byName[name] = reply.PolicerIndex
		v.segment.zeroPolicer(reply.PolicerIndex)
	}
}

// policerUpdate changes a policer's configuration and resets its counters.
func (v *vpp) policerUpdate(m *policer.PolicerUpdate) int32 {
	p := v.policers.at(m.PolicerIndex)
	switch {
	case p == nil:
		return retvalNoSuchEntry
	case !sane(m.Infos):
		return retvalInvalidValue
	}
	p.config = m.Infos
	v.segment.zeroPolicer(m.PolicerIndex)
	return 0
}

// policerDel deletes a policer. As in VPP, it may still be applied to interfaces.
func (v *vpp) policerDel(m *policer.PolicerDel) int32 {
	p := v.policers.at(m.PolicerIndex)
	if p == nil {
		return retvalNoSuchEntry
	}
	delete(v.policers.byName, p.name)
	v.policers.remove(m.PolicerIndex)
	return 0
}

// policerDump returns policers. As in VPP, the reply does not contain the index of a policer.
func (v *vpp) policerDump(m *policer.PolicerDumpV2, send func(*policer.PolicerDetails)) {
	for index, p := range v.policers.all() {
		if m.PolicerIndex != none && m.PolicerIndex != index {
			continue
		}
		send(&policer.PolicerDetails{
			Name: p.name, Cir: p.config.Cir, Eir: p.config.Eir, Cb: p.config.Cb, Eb: p.config.Eb, RateType: p.config.RateType,
			RoundType: p.config.RoundType, Type: p.config.Type, ColorAware: p.config.ColorAware, ConformAction: p.config.ConformAction,
			ExceedAction: p.config.ExceedAction, ViolateAction: p.config.ViolateAction, SingleRate: p.config.Eir == 0,
		})
	}
}

// policerInput applies a policer to an interface, or stops applying it. A repeated request applies the
// policer again, in addition.
func (v *vpp) policerInput(i *iface, m *policer.PolicerInput) int32 {
	index, known := v.policers.byName[strings.TrimRight(m.Name, "\x00")]
	existing := v.policers.applied[i.index]
	switch {
	case !known:
		return retvalNoSuchEntry
	case m.Apply:
		if existing == nil {
			existing = &applied{}
			v.policers.applied[i.index] = existing
		}
		existing.policer, existing.l2 = index, v.policesSubInterfaces()
		existing.times++
		v.policers.reach = max(v.policers.reach, i.index+1)
	case existing != nil:
		existing.policer, existing.l2 = none, false
		if existing.times--; existing.times == 0 {
			delete(v.policers.applied, i.index)
		}
	}
	return 0
}

// featureIsEnabled reports whether a feature is on. It knows the arcs of policers. If VPP cannot determine
// the state of a feature, it returns yes, because it stores the error code in a boolean.
func (v *vpp) featureIsEnabled(m *feature.FeatureIsEnabled, reply *feature.FeatureIsEnabledReply) {
	arc, last := "device-input", "ethernet-input"
	if v.policesSubInterfaces() {
		arc, last = "ip4-unicast", "ip4-lookup"
	}
	at := uint32(m.SwIfIndex)
	switch name := strings.TrimRight(m.FeatureName, "\x00"); {
	case v.at(m.SwIfIndex) == nil:
		reply.Retval = retvalInvalidInterface
	case at >= v.policers.reach, strings.TrimRight(m.ArcName, "\x00") != arc, name != "policer-input" && name != last:
		reply.IsEnabled = true
	case name == "policer-input":
		reply.IsEnabled = v.policers.applied[at] != nil
	}
}

// showFeatures prints the two arcs of policers in the form of vnet/feature/feature.c. A policer that was
// applied several times occurs in several rows of the output.
func (v *vpp) showFeatures(line string) (output string, retval int32) {
	i := v.addressed(line)
	if i == nil {
		return "show interface: unknown input `" + line + "'", retvalUnspecified
	}
	arcs, on := []string{"ip4-unicast", "device-input"}, "device-input"
	if v.policesSubInterfaces() {
		on = "ip4-unicast"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Feature paths configured on %s...\n", i.name)
	for _, arc := range arcs {
		fmt.Fprintf(&b, "\n%s:\n", arc)
		if existing := v.policers.applied[i.index]; arc == on && existing != nil {
			b.WriteString(strings.Repeat("  policer-input\n", existing.times))
		} else {
			b.WriteString("  none configured\n")
		}
	}
	b.WriteString(v.showL2Input(i))
	return b.String(), 0
}

// addressed returns the interface that a CLI command names, or nil if there is no such interface. VPP reads a
// name up to its first dot as the name of a port, and a number after the dot as a sub-interface
// (unformat_vnet_sw_interface in vnet/interface_format.c). Instead of a name, the command may have the
// sw_if_index (show_sw_interfaces in vnet/interface_cli.c).
func (v *vpp) addressed(line string) *iface {
	name, rest, dotted := strings.Cut(line, ".")
	if port := v.named(name); port != nil && !port.isSub() {
		if !dotted {
			return port
		}
		if id, err := strconv.ParseUint(rest, 10, 32); err == nil {
			return v.subinterface(port, uint32(id))
		}
		return nil
	}
	if index, err := strconv.ParseUint(line, 10, 32); err == nil {
		return v.at(interface_types.InterfaceIndex(index))
	}
	return nil
}

// working returns the policer that frames from the interface pass, and the policer's index. It returns nil if
// the frames pass no policer.
func (v *vpp) working(i *iface) (*namedPolicer, uint32) {
	if p, index := v.nodePolicer(i); p != nil {
		return p, index
	}
	return v.l2Policer(i)
}

// newDevices are the drivers of VPP's new device API. Their ports have the arc port-rx-eth, which has no
// policer (vnet/dev/port.c).
var newDevices = []string{"iavf", "octeon", "ena", "mvpp2"}

// entersByDeviceInput returns false for interfaces whose frames never pass the arc of policer-input. These
// are bonds, because their members receive the frames; ports of the new device API, which have another arc;
// and loopbacks, whose frames go directly to ethernet-input.
func (v *vpp) entersByDeviceInput(i *iface) bool {
	if i.device == "af-packet" && !v.config.from(24, 6) { // "af_packet: fix the device input feature arc support"
		return false
	}
	return !i.isSub() && i.device != bondDevice && i.device != "Loopback" && !slices.Contains(newDevices, i.device)
}

// nodePolicer returns the policer on the device-input arc, which works before any tag is read.
func (v *vpp) nodePolicer(i *iface) (*namedPolicer, uint32) {
	a := v.policers.applied[i.index]
	if a == nil || v.policesSubInterfaces() || !v.entersByDeviceInput(i) {
		return nil, none
	}
	return v.policers.at(a.policer), a.policer
}

// l2Policer returns the policer of L2 input. A classify table leads to it, or from 26.06 on the policer's own
// feature.
func (v *vpp) l2Policer(i *iface) (*namedPolicer, uint32) {
	if a := v.policers.applied[i.index]; a != nil && v.policesSubInterfaces() && a.l2 {
		return v.policers.at(a.policer), a.policer
	}
	index, _ := v.classified(i)
	return v.policers.at(index), index
}

// Policed returns the policer that frames from the named interface pass, and how often it was applied. VPP
// polices a frame once for each application. Policed returns "" and 0 if no policer works.
func (s *Sim) Policed(name string) (policer string, times int) {
	s.inspect(func(v *vpp) error {
		i := v.named(name)
		if i == nil {
			return nil
		}
		if p, _ := v.working(i); p != nil {
			policer = p.name
		}
		if a := v.policers.applied[i.index]; a != nil && policer != "" {
			times = a.times
		}
		if _, classified := v.classified(i); classified && policer != "" {
			times++
		}
		return nil
	})
	return policer, times
}

// classifiers has VPP's pool of classify tables, and the interfaces that use these tables for policing.
type classifiers struct {
	pool[classifyTable]
	bound map[uint32]uint32 // sw_if_index -> table; an entry remains when its interface is deleted
	works map[uint32]bool   // by sw_if_index: whether the L2 input feature is on; it is lost when the interface leaves L2 or is deleted
}

type classifyTable struct {
	request  classify.ClassifyAddDelTable
	sessions []classify.ClassifySessionDetails
}

const vector = 16 // bytes

// classifyAddDelTable creates or deletes a table. As in VPP, a table can be deleted although an interface
// uses it.
func (v *vpp) classifyAddDelTable(m *classify.ClassifyAddDelTable, reply *classify.ClassifyAddDelTableReply) {
	reply.NewTableIndex, reply.SkipNVectors, reply.MatchNVectors = none, none, none
	switch {
	case uint32(len(m.Mask)) != m.MatchNVectors*vector:
		reply.Retval = retvalInvalidValue
	case !m.IsAdd && v.classifiers.at(m.TableIndex) == nil:
		reply.Retval = retvalNoSuchTable
	case !m.IsAdd:
		v.classifiers.remove(m.TableIndex)
	case m.MemorySize == 0:
		reply.Retval = retvalInvalidMemorySize
	case m.Nbuckets == 0 || m.MatchNVectors < 1 || m.MatchNVectors > 5:
		reply.Retval = retvalInvalidValue
	default:
		reply.NewTableIndex = v.classifiers.add(&classifyTable{request: *m})
		reply.SkipNVectors, reply.MatchNVectors = m.SkipNVectors, m.MatchNVectors
	}
}

// classifyAddDelSession adds, replaces or deletes a session of a table. Only 16 bits of the session's
// target are stored (vnet_classify.h).
func (v *vpp) classifyAddDelSession(m *classify.ClassifyAddDelSession) int32 {
	t := v.classifiers.at(m.TableIndex)
	switch {
	case t == nil:
		return retvalNoSuchTable
	case uint32(len(m.Match)) != (t.request.SkipNVectors+t.request.MatchNVectors)*vector:
		return retvalInvalidValue
	}
	return t.set(m)
}

func (t *classifyTable) set(m *classify.ClassifyAddDelSession) (retval int32) {
	key := slices.Clone(m.Match[t.request.SkipNVectors*vector:])
	for n := range key {
		key[n] &= t.request.Mask[n]
	}
	session := classify.ClassifySessionDetails{
		TableID: m.TableIndex, HitNextIndex: m.HitNextIndex & 0xffff, Advance: m.Advance, OpaqueIndex: m.OpaqueIndex, Match: key,
	}
	at := slices.IndexFunc(t.sessions, func(s classify.ClassifySessionDetails) bool { return slices.Equal(s.Match, key) })
	switch {
	case m.IsAdd && at >= 0:
		t.sessions[at] = session
	case m.IsAdd:
		t.sessions = append(t.sessions, session)
	case at >= 0:
		t.sessions = slices.Delete(t.sessions, at, at+1)
	default:
		return retvalNoSuchEntry
	}
	return 0
}

func (v *vpp) classifyTableIDs(_ *classify.ClassifyTableIds, reply *classify.ClassifyTableIdsReply) {
	for index := range v.classifiers.all() {
		reply.Ids = append(reply.Ids, index)
	}
}

func (v *vpp) classifyTableInfo(m *classify.ClassifyTableInfo, reply *classify.ClassifyTableInfoReply) {
	t := v.classifiers.at(m.TableID)
	if t == nil {
		reply.Retval = retvalClassifyTableNotFound
		return
	}
	*reply = classify.ClassifyTableInfoReply{
		TableID: m.TableID, Nbuckets: t.request.Nbuckets, MatchNVectors: t.request.MatchNVectors, SkipNVectors: t.request.SkipNVectors,
		ActiveSessions: uint32(len(t.sessions)), NextTableIndex: t.request.NextTableIndex, MissNextIndex: t.request.MissNextIndex,
		Mask: t.request.Mask,
	}
}

func (v *vpp) classifySessionDump(m *classify.ClassifySessionDump, send func(*classify.ClassifySessionDetails)) {
	if t := v.classifiers.at(m.TableID); t != nil {
		for n := range t.sessions {
			send(&t.sessions[n])
		}
	}
}

// policerClassifySet binds an interface to a table, or removes the binding. If the interface is already bound
// to a table, policerClassifySet ignores the request for another binding and reports success
// (policer_classify.c).
func (v *vpp) policerClassifySet(i *iface, m *classify.PolicerClassifySetInterface) int32 {
	table := m.L2TableIndex
	existing, bound := v.classifiers.bound[i.index]
	switch {
	case table == none:
	case v.classifiers.at(table) == nil, !m.IsAdd && (!bound || existing != table):
		return retvalNoSuchTable
	case m.IsAdd && bound:
	case m.IsAdd:
		v.classifiers.bound[i.index], v.classifiers.works[i.index] = table, true
	default:
		delete(v.classifiers.bound, i.index)
		delete(v.classifiers.works, i.index)
	}
	return 0
}

// policerClassifyDump returns all interfaces if the request names the interface with index 0. If the request
// is for all interfaces, it returns none (vl_api_policer_classify_dump_t_handler in classify_api.c). For
// other indices, VPP reads memory out of bounds; the stand-in returns nothing.
func (v *vpp) policerClassifyDump(m *classify.PolicerClassifyDump, send func(*classify.PolicerClassifyDetails)) {
	if m.SwIfIndex != 0 || m.Type != classify.POLICER_CLASSIFY_API_TABLE_L2 {
		return
	}
	for _, at := range slices.Sorted(maps.Keys(v.classifiers.bound)) {
		send(&classify.PolicerClassifyDetails{SwIfIndex: interface_types.InterfaceIndex(at), TableIndex: v.classifiers.bound[at]})
	}
}

// As vnet/l2/l2_input.c does, showL2Input prints the part of "show interface features" about L2 input.
func (v *vpp) showL2Input(i *iface) string {
	if !v.classifiers.works[i.index] {
		return "\nl2-input:\n  none configured\n"
	}
	return "\nl2-input:\n     POLICER_CLAS (l2-policer-classify)\n"
}

// classified returns the index of the policer that polices all frames of the interface because of its
// classify table. all is false if some frames do not reach a policer.
func (v *vpp) classified(i *iface) (policer uint32, all bool) {
	table, bound := v.classifiers.bound[i.index]
	t := v.classifiers.at(table)
	if !bound || !v.classifiers.works[i.index] || t == nil || i.l2.kind == l3Mode || len(t.sessions) != 2 ||
		t.sessions[0].HitNextIndex != t.sessions[1].HitNextIndex {
		return none, false
	}
	return t.sessions[0].HitNextIndex, true
}

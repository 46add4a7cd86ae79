package intent

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"longline.dev/agent/internal/tunnel"
)

// MalformedError says that a body is not a JSON object (code malformed_json).
type MalformedError struct{ Detail string }

func (e *MalformedError) Error() string { return "intent: malformed JSON: " + e.Detail }

// InvalidError has every rule that a document breaks: first the rules for single fields, then the rules that
// compare entries. Both groups are in document order.
type InvalidError struct{ Errors []Error }

func (e *InvalidError) Error() string { return fmt.Sprintf("intent: %d errors", len(e.Errors)) }

const (
	minFrame = 82 // 68, the smallest svc_mtu and the minimum of an IPv4 link (RFC 791), plus 14 bytes of Ethernet header
	maxName  = 63 // VPP's string[64] without its terminator
	maxLabel = 64 // ifAlias (RFC 2863)

	// OwnTagPrefix is the prefix of the agent's tags.
	OwnTagPrefix = "longline:"

	maxTable = math.MaxUint32 - 1 // VPP uses the next number for "none"

	minWatchInterval, maxWatchInterval     = 50, 10_000 // ms
	minWatchMultiplier, maxWatchMultiplier = 2, 50
)

// placed is an entry of a document with its position, a JSON pointer.
type placed[T any] struct {
	entry   T
	pointer string
	text    string // JSON of an entry that was not in the last document
	known   *entry // the entry if it was also in the last document, otherwise nil
	keyed   bool   // vll and end are valid
	valid   bool
}

// Decode decodes the intent for the named router. The error is a *MalformedError or an *InvalidError.
func Decode(data []byte, router string) (*Intent, error) {
	in, _, err := decode(data, router, nil)
	return in, err
}

// decode does not parse the entries that are in known, which maps their text to them.
func decode(data []byte, router string, known map[string]*entry) (*Intent, []placed[End], error) {
	tree, err := parse(data, known)
	if err != nil {
		return nil, nil, &MalformedError{Detail: err.Error()}
	}
	var errors []Error
	root := &fields{object: tree, errors: &errors}
	if schema, ok := root.integer("schema", math.MinInt64, math.MaxInt64); ok && schema != 1 {
		root.fail("schema", "unknown_value", "this agent reads schema 1")
	}
	if name, ok := root.text("router"); ok && name != router {
		root.fail("router", "wrong_router", "this agent is %s", router)
	}
	generation, _ := root.integer("generation", 1, math.MaxInt64)
	var present []placed[End]
	root.each("present", func(f *fields) { present = append(present, decodeEnd(f)) })
	var removed []placed[Tombstone]
	root.each("removed", func(f *fields) { removed = append(removed, decodeTombstone(f)) })
	watch := decodeWatch(root)
	root.refuseUnknown()
	errors = append(errors, checkConsistency(present, removed)...)
	if len(errors) > 0 {
		return nil, nil, &InvalidError{Errors: errors}
	}
	in := &Intent{Router: router, Generation: generation, Watch: watch}
	in.Present = slices.Grow(in.Present, len(present))
	for i := range present {
		in.Present = append(in.Present, present[i].entry)
	}
	for _, r := range removed {
		in.Removed = append(in.Removed, r.entry)
	}
	slices.SortFunc(in.Present, func(a, b End) int { return a.Compare(b.Key) })
	slices.SortFunc(in.Removed, func(a, b Tombstone) int { return a.Compare(b.Key) })
	return in, present, nil
}

// decodeWatch reads the settings for watching paths. If they are absent, no path is watched.
func decodeWatch(root *fields) (watch Watch) {
	if _, found := root.optional("watch"); !found {
		return watch
	}
	if child, ok := root.child("watch"); ok {
		interval, _ := child.integer("interval_ms", minWatchInterval, maxWatchInterval)
		multiplier, _ := child.integer("multiplier", minWatchMultiplier, maxWatchMultiplier)
		watch = Watch{IntervalMS: int(interval), Multiplier: int(multiplier)}
		child.refuseUnknown()
	}
	return watch
}

func decodeKey(f *fields) (Key, int32, bool) {
	vll, vllOK := f.id("vll")
	end, endOK := f.oneOf("end", "a", "z")
	revision, _ := f.integer("revision", 1, math.MaxInt32)
	return Key{VLL: vll, End: end}, int32(revision), vllOK && endOK
}

func decodeTombstone(f *fields) placed[Tombstone] {
	before := len(*f.errors)
	key, revision, keyed := decodeKey(f)
	tombstone := Tombstone{Key: key, Revision: revision, Release: f.optionalBoolean("release")}
	tombstone.AccessTag = decodeTagOfOthers(f, "access_tag", tombstone.Release)
	tombstone.TunnelTag = decodeTagOfOthers(f, "tunnel_tag", tombstone.Release)
	return placed[Tombstone]{
		entry: tombstone, pointer: f.pointer, keyed: keyed,
		valid: len(*f.errors) == before,
	}
}

// decodeTagOfOthers reads the tag that a released interface gets. If the member is absent or null, the
// interface gets no tag.
func decodeTagOfOthers(f *fields, name string, release bool) string {
	value, _ := f.optional(name)
	if value == nil {
		return ""
	}
	tag, ok := f.asText(name, value)
	switch {
	case !ok:
	case !release:
		f.fail(name, "not_null", "must be null except for a released end")
	case len(tag) < 1 || len(tag) > maxName:
		f.fail(name, "out_of_range", "%d bytes are not in 1..%d", len(tag), maxName)
	case strings.ContainsFunc(tag, func(r rune) bool { return r < ' ' || r == 0x7f }):
		f.fail(name, "unknown_value", "must not contain control characters")
	case strings.HasPrefix(tag, OwnTagPrefix):
		f.fail(name, "unknown_value", "%s is reserved for the agent's tags", OwnTagPrefix)
	default:
		return tag
	}
	return ""
}

func decodeEnd(f *fields) placed[End] {
	if known := f.object.known; known != nil {
		return placed[End]{entry: known.end, pointer: f.pointer, known: known, keyed: true, valid: true}
	}
	before := len(*f.errors)
	p := placed[End]{pointer: f.pointer, text: f.object.text}
	p.entry.Key, p.entry.Revision, p.keyed = decodeKey(f)
	p.entry.AdminUp, _ = f.boolean("admin_up")
	frame, _ := f.integer("frame", minFrame, math.MaxUint16)
	p.entry.Frame = int(frame)
	p.entry.Access = decodeAccessOfEnd(f)
	if child, ok := f.child("transport"); ok {
		p.entry.Tunnel = decodeTransport(child)
		child.refuseUnknown()
	}
	p.entry.Bandwidth = decodeBandwidth(f, frame)
	for _, flag := range flags {
		*flag.of(&p.entry) = f.optionalBoolean(flag.name)
	}
	p.entry.Label = decodeLabel(f)
	if p.entry.Testing && p.entry.Tunnel.Encapsulation == L2XC {
		f.fail("testing", "unknown_value", "must be false with l2xc, which has no tunnel")
	}
	checkProbe(f, &p.entry)
	checkAdopted(f, &p.entry)
	checkUNILinkDown(f, &p.entry)
	p.valid = len(*f.errors) == before
	return p
}

// decodeLabel reads the line's name for people. It returns "" if the member is absent.
func decodeLabel(f *fields) string {
	value, found := f.optional("label")
	if !found {
		return ""
	}
	label, ok := f.asText("label", value)
	switch {
	case !ok:
	case len(label) < 1 || len(label) > maxLabel:
		f.fail("label", "out_of_range", "%d bytes are not in 1..%d", len(label), maxLabel)
	case strings.ContainsFunc(label, func(r rune) bool { return r < ' ' || r > '~' }):
		f.fail("label", "unknown_value", "must be printable ASCII")
	default:
		return label
	}
	return ""
}

// decodeAccessOfEnd reads the customer's side of an end. The member is null for a probe, which has no
// customer's side.
func decodeAccessOfEnd(f *fields) Access {
	if value, found := f.optional("access"); found && value == nil {
		return Access{}
	}
	child, ok := f.child("access")
	if !ok {
		return Access{}
	}
	defer child.refuseUnknown()
	return decodeAccess(child)
}

// checkProbe checks an end without an access. Such an end is only for test frames, so it must be under test.
// It must have no bandwidth profile, because there is no customer traffic to police.
func checkProbe(f *fields, end *End) {
	if value, found := f.optional("access"); !found || value != nil {
		return
	}
	if !end.Testing {
		f.fail("access", "unknown_value", "must not be null except for an end that is tested")
	}
	if end.Bandwidth != (Bandwidth{}) {
		f.fail("bandwidth", "not_null", "must be null without an access")
	}
}

// checkAdopted checks an adopted end. It must be neither tested nor policed, because it has to keep carrying
// a customer's frames unchanged.
func checkAdopted(f *fields, end *End) {
	if !end.Adopt {
		return
	}
	if end.Testing {
		f.fail("adopt", "unknown_value", "must be false for an end that is tested")
	}
	if end.Bandwidth != (Bandwidth{}) {
		f.fail("bandwidth", "not_null", "must be null for an end that is adopted")
	}
}

// checkUNILinkDown refuses to shut a port down if the end does not use the whole port, because the port may
// then carry other lines. It also refuses this for an end that is intended to be down, that is tested or that
// is adopted.
func checkUNILinkDown(f *fields, end *End) {
	switch {
	case !end.UNILinkDown:
	case end.Access.Tagging != Untagged:
		f.fail("uni_link_down", "unknown_value", "must be false except for a whole port")
	case !end.AdminUp:
		f.fail("uni_link_down", "unknown_value", "must be false for an end that is to be down")
	case end.Testing || end.Adopt:
		f.fail("uni_link_down", "unknown_value", "must be false for an end that is tested or adopted")
	}
}

func decodeAccess(f *fields) Access {
	var access Access
	var ok bool
	if access.Interface, ok = f.text("interface"); ok && (len(access.Interface) < 1 || len(access.Interface) > maxName) {
		f.fail("interface", "out_of_range", "%d bytes are not in 1..%d", len(access.Interface), maxName)
	}
	tagging, known := f.oneOf("tagging", string(Untagged), string(Dot1q), string(QinQ), string(Dot1ad))
	access.Tagging = Tagging(tagging)
	if known {
		access.Outer = decodeVLAN(f, "outer_vlan", access.Tagging.Tags() >= 1, access.Tagging)
		access.Inner = decodeVLAN(f, "inner_vlan", access.Tagging.Tags() == 2, access.Tagging)
	} else {
		f.get("outer_vlan")
		f.get("inner_vlan")
	}
	if access.Exact, ok = f.boolean("exact_match"); ok && !access.Exact && access.Tagging == Untagged {
		f.fail("exact_match", "unknown_value", "must be true with untagged")
	}
	return access
}

func decodeVLAN(f *fields, name string, wanted bool, tagging Tagging) uint16 {
	value, ok := f.needed(name, wanted, string(tagging))
	if !ok {
		return 0
	}
	vlan, _ := f.asInteger(name, value, 1, 4094)
	return uint16(vlan)
}

var encapsulations = func() (names []string) {
	for _, kind := range tunnel.Kinds {
		names = append(names, string(kind.Encapsulation))
	}
	return names
}()

func decodeTransport(f *fields) Tunnel {
	var t Tunnel
	encapsulation, known := f.oneOf("encapsulation", encapsulations...)
	if !known {
		for _, name := range []string{"family", "local", "remote", "vni"} {
			f.get(name)
		}
		f.read = append(f.read, "gre_key", "table")
		return t
	}
	t.Encapsulation = Encapsulation(encapsulation)
	tunneled := t.Encapsulation != L2XC
	family := decodeFamily(f, tunneled, encapsulation)
	t.Local = decodeAddress(f, "local", tunneled, encapsulation, family)
	t.Remote = decodeAddress(f, "remote", tunneled, encapsulation, family)
	if t.Local.IsValid() && t.Local == t.Remote {
		f.fail("remote", "same_endpoints", "local and remote are both %s", t.Local)
	}
	if value, ok := f.needed("vni", t.Kind().HasVNI, encapsulation); ok {
		vni, _ := f.asInteger("vni", value, 1, 1<<24-1)
		t.VNI = uint32(vni)
	}
	t.GREKey = decodeOptionalNumber(f, "gre_key", t.Kind().HasGREKey, encapsulation, math.MaxUint32)
	t.Table = decodeOptionalNumber(f, "table", tunneled, encapsulation, maxTable)
	return t
}

// decodeOptionalNumber reads a number from 1 to highest, or returns 0 if the member is absent or null. allowed
// reports whether the encapsulation may have the member.
func decodeOptionalNumber(f *fields, name string, allowed bool, encapsulation string, highest int64) uint32 {
	if value, _ := f.optional(name); value == nil {
		return 0
	}
	value, ok := f.needed(name, allowed, encapsulation)
	if !ok {
		return 0
	}
	number, _ := f.asInteger(name, value, 1, highest)
	return uint32(number)
}

// decodeFamily returns the address family of a tunnel: 4, 6, or 0 if it is unknown.
func decodeFamily(f *fields, wanted bool, encapsulation string) int64 {
	value, ok := f.needed("family", wanted, encapsulation)
	if !ok {
		return 0
	}
	family, ok := f.asInteger("family", value, math.MinInt64, math.MaxInt64)
	if ok && family != 4 && family != 6 {
		f.fail("family", "unknown_value", "%d is not 4 or 6", family)
		return 0
	}
	return family
}

func decodeAddress(f *fields, name string, wanted bool, encapsulation string, family int64) netip.Addr {
	value, ok := f.needed(name, wanted, encapsulation)
	if !ok {
		return netip.Addr{}
	}
	text, ok := f.asText(name, value)
	if !ok || family == 0 {
		return netip.Addr{}
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.String() != text || !unicast(address) || address.Is4() != (family == 4) {
		f.fail(name, "family_mismatch", "%.60q is not a unicast IPv%d address in canonical form", text, family)
		return netip.Addr{}
	}
	return address
}

func unicast(address netip.Addr) bool {
	broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return !address.IsMulticast() && !address.IsUnspecified() && address != broadcast &&
		!address.Is4In6() && address.Zone() == ""
}

const (
	leastRate  = 1000               // bit/s: VPP's policers count in kbit/s
	mostRate   = (1<<32 - 1) * 1000 // bit/s: VPP's policers store the rate in 32 bits
	mostBurst  = 1<<31 - 1          // bytes
	leastBurst = minFrame           // bytes; no frame would pass a bucket that is smaller than the frame
)

// decodeBandwidth reads the bandwidth profile of an end. frame is the length of the end's longest frame
// (bytes), or 0 if unknown. The profile may be null or absent. In this case VPP polices nothing.
func decodeBandwidth(end *fields, frame int64) Bandwidth {
	if value, _ := end.optional("bandwidth"); value == nil {
		return Bandwidth{}
	}
	f, ok := end.child("bandwidth")
	if !ok {
		return Bandwidth{}
	}
	defer f.refuseUnknown()
	var b Bandwidth
	b.CIR, _ = f.integer("cir_bps", leastRate, mostRate)
	b.CBS = decodeBurst(f, "cbs_bytes", true, frame)
	eir, known := f.integer("eir_bps", 0, mostRate-b.CIR) // the peak rate of VPP's policer is CIR + EIR
	if b.EIR = eir; known {
		b.EBS = decodeBurst(f, "ebs_bytes", eir > 0, frame)
	} else {
		f.get("ebs_bytes")
	}
	return b
}

// decodeBurst reads the size of a bucket (bytes). If filled is false, no rate fills the bucket, and its size
// must be 0. Otherwise the bucket must have room for at least one frame.
func decodeBurst(f *fields, name string, filled bool, frame int64) int64 {
	if !filled {
		f.integer(name, 0, 0)
		return 0
	}
	burst, ok := f.integer(name, leastBurst, mostBurst)
	if ok && burst < frame {
		f.fail(name, "burst_too_small", "%d bytes are less than a frame of %d", burst, frame)
	}
	return burst
}

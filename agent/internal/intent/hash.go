package intent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
)

// Document renders the intent as the contract's JSON, canonically: names sorted, no white space, entries
// sorted by (vll, end), so that equal content is equal text whoever wrote it.
func (in *Intent) Document() []byte {
	present, removed := []any{}, []any{}
	for _, e := range in.Present {
		present = append(present, e.document())
	}
	for _, r := range in.Removed {
		removed = append(removed, map[string]any{"vll": r.VLL, "end": r.End, "revision": r.Revision})
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	// Maps of strings, numbers and booleans cannot fail to encode; their keys come out sorted.
	_ = encoder.Encode(map[string]any{
		"schema": 1, "router": in.Router, "generation": in.Generation, "present": present, "removed": removed,
	})
	return bytes.TrimSpace(text.Bytes())
}

// SHA256 is the hash of the canonical document, in hex.
func (in *Intent) SHA256() string {
	sum := sha256.Sum256(in.Document())
	return hex.EncodeToString(sum[:])
}

func (e End) document() map[string]any {
	return map[string]any{
		"vll": e.VLL, "end": e.End, "revision": e.Revision, "admin_up": e.AdminUp, "frame": e.Frame,
		"access": map[string]any{
			"interface": e.Access.Interface, "tagging": e.Access.Tagging, "exact_match": e.Access.Exact,
			"outer_vlan": orNull(e.Access.Outer), "inner_vlan": orNull(e.Access.Inner),
		},
		"transport": map[string]any{
			"encapsulation": e.Tunnel.Encapsulation, "family": orNull(e.Tunnel.Family()),
			"local": addressOrNull(e.Tunnel.Local), "remote": addressOrNull(e.Tunnel.Remote),
			"vni": orNull(e.Tunnel.VNI),
		},
	}
}

// Family is 4, 6, or 0 without a tunnel.
func (t Tunnel) Family() int {
	switch {
	case !t.Local.IsValid():
		return 0
	case t.Local.Is4():
		return 4
	}
	return 6
}

func orNull[T comparable](value T) any {
	var zero T
	if value == zero {
		return nil
	}
	return value
}

func addressOrNull(address netip.Addr) any {
	if !address.IsValid() {
		return nil
	}
	return address.String()
}

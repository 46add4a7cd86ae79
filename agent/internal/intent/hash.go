package intent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
)

// The contract's document. Fields stand in alphabetical order of their names, which makes the encoding
// canonical.
type (
	documentBody struct {
		Generation int64           `json:"generation"`
		Present    []endBody       `json:"present"`
		Removed    []tombstoneBody `json:"removed"`
		Router     string          `json:"router"`
		Schema     int             `json:"schema"`
	}
	endBody struct {
		Access    accessBody    `json:"access"`
		AdminUp   bool          `json:"admin_up"`
		Bandwidth *bandwidth    `json:"bandwidth"`
		End       string        `json:"end"`
		Frame     int           `json:"frame"`
		Revision  int32         `json:"revision"`
		Transport transportBody `json:"transport"`
		VLL       string        `json:"vll"`
	}
	accessBody struct {
		ExactMatch bool    `json:"exact_match"`
		InnerVLAN  *uint16 `json:"inner_vlan"`
		Interface  string  `json:"interface"`
		OuterVLAN  *uint16 `json:"outer_vlan"`
		Tagging    Tagging `json:"tagging"`
	}
	transportBody struct {
		Encapsulation Encapsulation `json:"encapsulation"`
		Family        *int          `json:"family"`
		Local         *netip.Addr   `json:"local"`
		Remote        *netip.Addr   `json:"remote"`
		VNI           *uint32       `json:"vni"`
	}
	bandwidth struct {
		CBS int64 `json:"cbs_bytes"`
		CIR int64 `json:"cir_bps"`
		EBS int64 `json:"ebs_bytes"`
		EIR int64 `json:"eir_bps"`
	}
	tombstoneBody struct {
		End      string `json:"end"`
		Revision int32  `json:"revision"`
		VLL      string `json:"vll"`
	}
)

// Document renders the intent as the contract's JSON, canonically: names sorted, no white space, entries
// sorted by (vll, end), so that equal content is equal text whoever wrote it.
func (in *Intent) Document() []byte {
	body := documentBody{in.Generation, []endBody{}, []tombstoneBody{}, in.Router, 1}
	for _, e := range in.Present {
		body.Present = append(body.Present, e.body())
	}
	for _, r := range in.Removed {
		body.Removed = append(body.Removed, tombstoneBody{r.End, r.Revision, r.VLL})
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // strings, numbers and booleans cannot fail to encode
	return bytes.TrimSpace(text.Bytes())
}

// SHA256 is the hash of the canonical document, in hex.
func (in *Intent) SHA256() string { return hashOf(in.Document()) }

func hashOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

func (e End) body() endBody {
	a, t, b := e.Access, e.Tunnel, e.Bandwidth
	return endBody{
		Access:    accessBody{a.Exact, orNull(a.Inner), a.Interface, orNull(a.Outer), a.Tagging},
		AdminUp:   e.AdminUp,
		Bandwidth: orNull(bandwidth{CBS: b.CBS, CIR: b.CIR, EBS: b.EBS, EIR: b.EIR}),
		End:       e.Key.End,
		Frame:     e.Frame,
		Revision:  e.Revision,
		Transport: transportBody{t.Encapsulation, orNull(t.Family()), orNull(t.Local), orNull(t.Remote), orNull(t.VNI)},
		VLL:       e.VLL,
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

func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

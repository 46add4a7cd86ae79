package intent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// Document returns the intent as JSON (docs/reference/agent-api.md) in canonical form: names sorted, no white
// space, entries sorted by (vll, end). Equal intents therefore have equal text. Document writes the whole
// text for each change of one VLL. It does not use encoding/json, which takes several times as long.
func (in *Intent) Document() []byte {
	const perEnd = 400 // bytes, about
	text := make(text, 0, (1+len(in.Present))*perEnd)
	text = text.raw(`{"generation":`).integer(in.Generation).raw(`,"present":[`)
	for i := range in.Present {
		if i > 0 {
			text = append(text, ',')
		}
		text = text.end(&in.Present[i])
	}
	text = text.raw(`],"removed":[`)
	for i, r := range in.Removed {
		if i > 0 {
			text = append(text, ',')
		}
		text = text.tombstone(r)
	}
	text = text.raw(`],"router":`).quoted(in.Router).raw(`,"schema":1`)
	if in.Watch != (Watch{}) {
		text = text.raw(`,"watch":{"interval_ms":`).integer(int64(in.Watch.IntervalMS)).
			raw(`,"multiplier":`).integer(int64(in.Watch.Multiplier)).raw(`}`)
	}
	return text.raw(`}`)
}

// SHA256 returns the hash of the canonical document, in hex.
func (in *Intent) SHA256() string { return hashOf(in.Document()) }

func hashOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// text is JSON that is being written.
type text []byte

func (t text) end(e *End) text {
	a, u, b := &e.Access, &e.Tunnel, &e.Bandwidth
	rest := flags
	// member writes the name of the next member, and before it the flags whose names sort before this name.
	member := func(name string) {
		for ; len(rest) > 0 && rest[0].name < name; rest = rest[1:] {
			if *rest[0].of(e) {
				t = t.raw(`,"`).raw(rest[0].name).raw(`":true`)
			}
		}
		t = t.raw(`,"`).raw(name).raw(`":`)
	}
	if e.IsProbe() {
		t = t.raw(`{"access":null`)
	} else {
		t = t.raw(`{"access":{"exact_match":`).boolean(a.Exact).raw(`,"inner_vlan":`).orNull(int64(a.Inner)).
			raw(`,"interface":`).quoted(a.Interface).raw(`,"outer_vlan":`).orNull(int64(a.Outer)).
			raw(`,"tagging":`).quoted(string(a.Tagging)).raw(`}`)
	}
	member("admin_up")
	t = t.boolean(e.AdminUp)
	if *b != (Bandwidth{}) {
		member("bandwidth")
		t = t.raw(`{"cbs_bytes":`).integer(b.CBS).raw(`,"cir_bps":`).integer(b.CIR).
			raw(`,"ebs_bytes":`).integer(b.EBS).raw(`,"eir_bps":`).integer(b.EIR).raw(`}`)
	}
	member("end")
	t = t.quoted(e.Key.End)
	member("frame")
	t = t.integer(int64(e.Frame))
	if e.Label != "" {
		member("label")
		t = t.quoted(e.Label)
	}
	member("revision")
	t = t.integer(int64(e.Revision))
	member("transport")
	t = t.raw(`{"encapsulation":`).quoted(string(u.Encapsulation)).raw(`,"family":`).orNull(int64(u.Family()))
	if u.GREKey != 0 {
		t = t.raw(`,"gre_key":`).integer(int64(u.GREKey))
	}
	t = t.raw(`,"local":`)
	if u.Family() == 0 {
		t = t.raw(`null,"remote":null`)
	} else {
		t = t.quoted(u.Local.String()).raw(`,"remote":`).quoted(u.Remote.String())
	}
	if u.Table != 0 {
		t = t.raw(`,"table":`).integer(int64(u.Table))
	}
	t = t.raw(`,"vni":`).orNull(int64(u.VNI)).raw(`}`)
	member("vll")
	return t.quoted(e.VLL).raw(`}`)
}

func (t text) tombstone(r Tombstone) text {
	t = t.raw(`{`)
	if r.AccessTag != "" {
		t = t.raw(`"access_tag":`).quoted(r.AccessTag).raw(`,`)
	}
	t = t.raw(`"end":`).quoted(r.End)
	if r.Release {
		t = t.raw(`,"release":true`)
	}
	t = t.raw(`,"revision":`).integer(int64(r.Revision))
	if r.TunnelTag != "" {
		t = t.raw(`,"tunnel_tag":`).quoted(r.TunnelTag)
	}
	return t.raw(`,"vll":`).quoted(r.VLL).raw(`}`)
}

func (t text) raw(s string) text { return append(t, s...) }

func (t text) integer(n int64) text { return strconv.AppendInt(t, n, 10) }

func (t text) boolean(b bool) text { return strconv.AppendBool(t, b) }

// orNull writes 0 as null.
func (t text) orNull(n int64) text {
	if n == 0 {
		return t.raw("null")
	}
	return t.integer(n)
}

func (t text) quoted(s string) text {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return t.escaped(s)
		}
	}
	return append(append(append(t, '"'), s...), '"')
}

func (t text) escaped(s string) text {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string cannot fail to encode
	return append(t, bytes.TrimSpace(quoted.Bytes())...)
}

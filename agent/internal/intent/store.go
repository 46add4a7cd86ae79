package intent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"longline.dev/agent/internal/durable"
)

// OldGenerationError says that a document is refused because it is older than the stored document.
type OldGenerationError struct{ Stored, Generation int64 }

func (e *OldGenerationError) Error() string {
	return fmt.Sprintf("intent: generation %d is older than the stored %d", e.Generation, e.Stored)
}

// GenerationReusedError says that a document is refused because it has the generation of the stored document
// but differs from it.
type GenerationReusedError struct{ Generation int64 }

func (e *GenerationReusedError) Error() string {
	return fmt.Sprintf("intent: generation %d is stored with other content", e.Generation)
}

// Store stores the last accepted intent, in memory and on disk.
type Store struct {
	path      string
	setAside  *durable.SetAsideFile
	least     int64      // highest generation of the intents that are set aside: while no intent is stored, no older one is accepted
	accepting sync.Mutex // locked while the disk is written

	mu     sync.Mutex
	stored *Intent
	hash   string
	size   int // size of the stored document (bytes)
}

// leastReserve is the disk space that is reserved even while no intent is stored (bytes).
const leastReserve = 64 << 10

// Reserve reserves disk space for three documents of the current size, in addition to leastReserve. The three
// are the next intent, the journal in use and the previous journal. Journals are shorter than documents.
// Components that store other data in the folder must call Reserve first. Reserve returns an error of the
// disk.
func (s *Store) Reserve() error {
	s.mu.Lock()
	size := s.size
	s.mu.Unlock()
	return durable.Reserve(filepath.Dir(s.path), leastReserve+3*int64(size))
}

// OpenStore reads the stored intent in the folder. If the intent cannot be read, it is set aside, and no
// intent is stored until the portal sends one. If the generation of the set-aside intent can be read, Accept
// still refuses older generations.
func OpenStore(folder, router string) *Store {
	s := &Store{path: filepath.Join(folder, "intent.json")}
	data, err := os.ReadFile(s.path)
	if err == nil {
		var stored *Intent
		if stored, err = Decode(data, router); err == nil {
			s.stored, s.hash, s.size = stored, stored.SHA256(), len(data)
			return s
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		s.setAside = new(durable.SetAside(s.path, firstError(err)))
	}
	s.least = generationSetAside(folder)
	return s
}

// firstError returns err with the details of the document's first error.
func firstError(err error) error {
	invalid, is := errors.AsType[*InvalidError](err)
	if !is || len(invalid.Errors) == 0 {
		return err
	}
	first := invalid.Errors[0]
	return fmt.Errorf("%w, the first at %s: %s (%s)", err, first.Pointer, first.Detail, first.Code)
}

// generationSetAside returns the highest generation of the intents that are set aside in the folder, or 0 if
// no generation can be read.
func generationSetAside(folder string) (highest int64) {
	for _, aside := range durable.AllSetAside(nil, folder) {
		var document struct{ Generation int64 }
		if data, err := os.ReadFile(aside.Path); err == nil && json.Unmarshal(data, &document) == nil {
			highest = max(highest, document.Generation)
		}
	}
	return highest
}

// SetAside returns the file that was set aside when the store was opened, or nil if there was none.
func (s *Store) SetAside() *durable.SetAsideFile { return s.setAside }

// Current returns the last accepted intent and its hash, or nil and "" if there is no accepted intent. The
// intent must not be changed.
func (s *Store) Current() (*Intent, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored, s.hash
}

// Accept stores an intent. Current returns the previous intent until the new intent is safely on disk. If the
// same document is stored already, Accept does nothing. Accept returns *OldGenerationError,
// *GenerationReusedError or an error of the disk. After an error, the stored intent is unchanged.
func (s *Store) Accept(in *Intent) error {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	document := in.Document()
	hash := hashOf(document)
	before, itsHash := s.Current()
	if before == nil && in.Generation < s.least {
		return &OldGenerationError{Stored: s.least, Generation: in.Generation}
	}
	if before != nil {
		switch {
		case in.Generation < before.Generation:
			return &OldGenerationError{Stored: before.Generation, Generation: in.Generation}
		case in.Generation == before.Generation && hash != itsHash:
			return &GenerationReusedError{Generation: in.Generation}
		case hash == itsHash:
			return nil
		}
	}
	if err := durable.Replace(s.path, document); err != nil {
		return err
	}
	s.mu.Lock()
	s.stored, s.hash, s.size = in, hash, len(document)
	s.mu.Unlock()
	_ = s.Reserve() // if this fails, the next caller of Reserve tries again
	return nil
}

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

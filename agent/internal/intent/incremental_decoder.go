package intent

import "sync"

// Decoder decodes successive intents of one router. For each change of one VLL, the portal sends the intent
// of the whole router. An entry whose identical text was in the last document is not decoded again. Each
// document is still checked completely: its grammar, and every rule that compares entries.
type Decoder struct {
	router string

	mu    sync.Mutex
	known map[string]*entry // entries of the last valid document, by text; never changed after it is set
}

// entry is a valid object of the array present.
type entry struct {
	text string
	end  End
}

// NewDecoder returns a decoder for the named router without known entries.
func NewDecoder(router string) *Decoder { return &Decoder{router: router} }

// Decode does the same as the function Decode. It is safe for concurrent use.
func (d *Decoder) Decode(data []byte) (*Intent, error) {
	shorter := cutKnown(data, d.last())
	in, present, err := decode(shorter, d.router)
	if err != nil && len(shorter.cut) > 0 {
		in, present, err = decode(document{text: data}, d.router) // decode the whole document, so that pointers and offsets refer to it
	}
	if err == nil {
		d.remember(present)
	}
	return in, err
}

func (d *Decoder) last() map[string]*entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

func (d *Decoder) remember(present []placed[End]) {
	known := make(map[string]*entry, len(present))
	for _, p := range present {
		e := p.known
		if e == nil {
			e = &entry{string(p.text), p.entry}
		}
		known[e.text] = e
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = known
}

// document is a JSON text in which some entries may have been replaced by the placeholder. It has the offsets
// of the replaced entries.
type document struct {
	text []byte
	cut  map[int]*entry
}

// placeholder is an object like an entry, so the text with placeholders is valid JSON if and only if the
// original text is valid JSON. A valid document has no empty object, so the placeholder cannot be mistaken
// for an object of the portal.
const placeholder = "{}"

// cutKnown replaces the known entries by placeholders. A known entry is an object in an array of the
// document, so it is two levels deep. data may be any bytes, including invalid JSON.
func cutKnown(data []byte, known map[string]*entry) document {
	const within = 2
	if len(known) == 0 {
		return document{text: data}
	}
	d := document{cut: make(map[int]*entry, len(known))}
	depth, start, copied := 0, 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = closing(data, i)
		case '{', '[':
			if depth == within {
				start = i
			}
			depth++
		case '}', ']':
			depth--
			if depth != within {
				continue
			}
			if e := known[string(data[start:i+1])]; e != nil {
				d.text = append(d.text, data[copied:start]...)
				d.cut[len(d.text)] = e
				d.text = append(d.text, placeholder...)
				copied = i + 1
			}
		}
	}
	d.text = append(d.text, data[copied:]...)
	return d
}

// closing returns the offset where the string that begins at start ends, or len(data) if it does not end.
func closing(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++ // skips the escaped character
		case '"':
			return i
		}
	}
	return len(data)
}

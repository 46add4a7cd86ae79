package intent

import "sync"

// Decoder reads the intents of one router, one after the other. The portal sends the whole router for each
// change of one VLL; what stood in the last document letter for letter is not read again. Each document is
// still checked whole: its grammar, and every rule that compares entries.
type Decoder struct {
	router string

	mu    sync.Mutex
	known map[string]*entry // of the last valid document, by text; never changed once it is here
}

// entry is one object of present that was found valid.
type entry struct {
	text string
	end  End
}

// NewDecoder makes a decoder for the named router that knows nothing yet.
func NewDecoder(router string) *Decoder { return &Decoder{router: router} }

// Decode does what the function Decode does. It is safe for concurrent use.
func (d *Decoder) Decode(data []byte) (*Intent, error) {
	shorter := cutKnown(data, d.last())
	in, present, err := decode(shorter, d.router)
	if err != nil && len(shorter.cut) > 0 {
		in, present, err = decode(document{text: data}, d.router) // pointers and offsets are those of the whole
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

// document is a JSON text in which some entries may have been replaced by the placeholder, by offset.
type document struct {
	text []byte
	cut  map[int]*entry
}

// placeholder is an object too, so a text in which it stands for one is JSON exactly if the whole is. None of
// the contract's objects may be empty, so it is nowhere taken for one that the portal sent.
const placeholder = "{}"

// cutKnown replaces the known entries. Such an entry is two levels deep: in an array of the document. The text
// may be anything at all.
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

// closing is where the string that begins at start ends, len(data) if it does not.
func closing(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++ // whatever is escaped
		case '"':
			return i
		}
	}
	return len(data)
}

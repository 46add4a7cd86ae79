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
	d.mu.Lock()
	last := d.known
	d.mu.Unlock()
	in, present, err := decode(data, d.router, last)
	if err != nil {
		return nil, err
	}
	known := make(map[string]*entry, len(present))
	for _, p := range present {
		e := p.known
		if e == nil {
			e = &entry{p.text, p.entry}
		}
		known[e.text] = e
	}
	d.mu.Lock()
	d.known = known
	d.mu.Unlock()
	return in, nil
}

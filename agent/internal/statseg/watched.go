package statseg

import (
	"fmt"
)

// Watched is a segment that is opened when it is needed, and anew when VPP has restarted.
type Watched struct {
	socket  string
	segment *Segment
}

// Watch opens nothing yet.
func Watch(socket string) *Watched { return &Watched{socket: socket} }

// Read takes a reading of the VPP that started at bootMS. A mapping of an earlier VPP stays readable and
// frozen, so one with another boot time is opened again.
func (w *Watched) Read(bootMS int64) (Reading, error) {
	for attempt := 0; ; attempt++ {
		reading, err := w.read()
		if err == nil && reading.BootMS == bootMS {
			return reading, nil
		}
		w.Close()
		if attempt == 1 {
			if err == nil {
				err = fmt.Errorf("read stats segment: it is of the VPP started at %d and not at %d ms", reading.BootMS, bootMS)
			}
			return Reading{}, err
		}
	}
}

func (w *Watched) read() (Reading, error) {
	if w.segment == nil {
		segment, err := Open(w.socket, noWait)
		if err != nil {
			return Reading{}, err
		}
		w.segment = segment
	}
	return w.segment.Read()
}

// Close unmaps what is open.
func (w *Watched) Close() {
	if w.segment != nil {
		w.segment.Close()
		w.segment = nil
	}
}

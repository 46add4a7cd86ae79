package statseg

import (
	"errors"
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
func (w *Watched) Read(bootMS int64) (reading Reading, err error) {
	err = w.look(bootMS, func(s *Segment) (int64, error) {
		reading, err = s.Read()
		return reading.BootMS, err
	})
	return reading, err
}

// Reread takes a reading of what is mapped already, whoever may have started since: a VPP that answers nothing hands out
// no mapping either.
func (w *Watched) Reread() (Reading, error) {
	if w.segment == nil {
		return Reading{}, errors.New("read stats segment: it is not open")
	}
	return w.segment.Read()
}

// look reads from the segment of the VPP that started at bootMS; read says of which VPP its figures are.
func (w *Watched) look(bootMS int64, read func(*Segment) (int64, error)) error {
	for attempt := 0; ; attempt++ {
		found, err := w.attempt(read)
		if err == nil && found == bootMS {
			return nil
		}
		w.Close()
		if attempt == 1 {
			if err == nil {
				err = fmt.Errorf("read stats segment: it is of the VPP started at %d and not at %d ms", found, bootMS)
			}
			return err
		}
	}
}

func (w *Watched) attempt(read func(*Segment) (int64, error)) (int64, error) {
	if w.segment == nil {
		segment, err := Open(w.socket, noWait)
		if err != nil {
			return 0, err
		}
		w.segment = segment
	}
	return read(w.segment)
}

// Close unmaps what is open.
func (w *Watched) Close() {
	if w.segment != nil {
		w.segment.Close()
		w.segment = nil
	}
}

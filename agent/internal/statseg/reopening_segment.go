package statseg

import (
	"errors"
	"fmt"
)

// ReopeningSegment is a segment that is opened when it is needed, and anew when VPP has restarted.
type ReopeningSegment struct {
	socket  string
	segment *Segment
}

// NewReopeningSegment opens nothing yet.
func NewReopeningSegment(socket string) *ReopeningSegment { return &ReopeningSegment{socket: socket} }

// Read takes a reading of the VPP that started at bootMS. A mapping of an earlier VPP stays readable and
// frozen, so one with another boot time is opened again.
func (r *ReopeningSegment) Read(bootMS int64) (reading Reading, err error) {
	err = r.readFrom(bootMS, func(s *Segment) (int64, error) {
		reading, err = s.Read()
		return reading.BootMS, err
	})
	return reading, err
}

// Reread takes a reading of what is mapped already, whoever may have started since: a VPP that answers nothing hands out
// no mapping either.
func (r *ReopeningSegment) Reread() (Reading, error) {
	if r.segment == nil {
		return Reading{}, errors.New("read stats segment: it is not open")
	}
	return r.segment.Read()
}

// readFrom reads from the segment of the VPP that started at bootMS; read says of which VPP its figures are.
func (r *ReopeningSegment) readFrom(bootMS int64, read func(*Segment) (int64, error)) error {
	for attempt := 0; ; attempt++ {
		found, err := r.attempt(read)
		if err == nil && found == bootMS {
			return nil
		}
		r.Close()
		if attempt == 1 {
			if err == nil {
				err = fmt.Errorf("read stats segment: it is of the VPP started at %d and not at %d ms", found, bootMS)
			}
			return err
		}
	}
}

func (r *ReopeningSegment) attempt(read func(*Segment) (int64, error)) (int64, error) {
	if r.segment == nil {
		segment, err := Open(r.socket, noWait)
		if err != nil {
			return 0, err
		}
		r.segment = segment
	}
	return read(r.segment)
}

// Close unmaps what is open.
func (r *ReopeningSegment) Close() {
	if r.segment != nil {
		r.segment.Close()
		r.segment = nil
	}
}

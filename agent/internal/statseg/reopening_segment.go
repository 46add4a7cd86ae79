package statseg

import (
	"errors"
	"fmt"
)

// ReopeningSegment opens the stats segment when it is needed, and opens it again after a restart of VPP.
type ReopeningSegment struct {
	socket  string
	segment *Segment
}

// NewReopeningSegment returns a segment that is not open yet.
func NewReopeningSegment(socket string) *ReopeningSegment { return &ReopeningSegment{socket: socket} }

// Read reads the segment of the VPP that started at bootMS. The mapping of an earlier VPP stays readable, but
// its values no longer change. So Read opens the segment again if the boot time differs.
func (r *ReopeningSegment) Read(bootMS int64) (reading Reading, err error) {
	err = r.readFrom(bootMS, func(s *Segment) (int64, error) {
		reading, err = s.Read()
		return reading.BootMS, err
	})
	return reading, err
}

// Reread reads the mapping that is already open, even if another VPP has started since. It does not open a
// new mapping, because a VPP that does not respond provides no mapping.
func (r *ReopeningSegment) Reread() (Reading, error) {
	if r.segment == nil {
		return Reading{}, errors.New("read stats segment: it is not open")
	}
	return r.segment.Read()
}

// readFrom reads from the segment of the VPP that started at bootMS. The function read returns the boot
// time of the VPP that it read.
func (r *ReopeningSegment) readFrom(bootMS int64, read func(*Segment) (int64, error)) error {
	for attempt := 0; ; attempt++ {
		found, err := r.attempt(read)
		if err == nil && found == bootMS {
			return nil
		}
		r.Close()
		if attempt == 1 {
			if err == nil {
				err = fmt.Errorf("read stats segment: it belongs to the VPP started at %d and not at %d ms", found, bootMS)
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

// Close removes the mapping, if one is open.
func (r *ReopeningSegment) Close() {
	if r.segment != nil {
		r.segment.Close()
		r.segment = nil
	}
}

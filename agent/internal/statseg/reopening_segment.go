package statseg

import (
	"errors"
	"fmt"

	"go.fd.io/govpp/adapter"
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

// Epoch returns the segment's epoch in the VPP that started at bootMS (ms since the Unix epoch). While the
// epoch is the same, VPP has created and deleted no interface. This applies to ports, to sub-interfaces, and
// to VXLAN, GENEVE and GRE tunnels.
//
// VPP changes the epoch when the directory changes. Every call that creates or deletes an interface therefore
// changes the epoch, before VPP sends the reply or an event. See statseg_sw_interface_add_del in
// vnet/interface/stats.c and vlib_stats_segment_unlock (23.10 to 26.06). Other changes of the directory also
// change the epoch.
//
// The epoch does not show changes of the tunnels of some other plugins. These plugins only hide the interface
// of a deleted tunnel, and later reuse the interface with the same index.
func (r *ReopeningSegment) Epoch(bootMS int64) (epoch int64, err error) {
	err = r.readFrom(bootMS, func(s *Segment) (int64, error) {
		var found int64
		epoch, found, err = s.epoch()
		return found, err
	})
	return epoch, err
}

// Interfaces returns the number of interface indices that the VPP that started at bootMS has assigned, and
// the epoch. All interfaces have indices below this number. Some of these indices may be free.
func (r *ReopeningSegment) Interfaces(bootMS int64) (indices int, epoch int64, err error) {
	err = r.readFrom(bootMS, func(s *Segment) (found int64, err error) {
		indices, epoch, found, err = s.interfaces()
		return found, err
	})
	return indices, epoch, err
}

func (s *Segment) interfaces() (indices int, epoch, bootMS int64, err error) {
	const names = "/if/names"
	dir, err := s.directory(bootEntry, names)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("read stats segment: %w", err)
	}
	indices = -1
	for _, entry := range dir.Entries {
		switch data := entry.Data.(type) {
		case adapter.ScalarStat:
			bootMS = int64(float64(data) * 1000)
		case adapter.NameStat:
			indices = len(data)
		}
	}
	if indices < 0 || bootMS == 0 {
		return 0, 0, 0, errors.New("read stats segment: it has no boot time or no names of interfaces")
	}
	return indices, dir.Epoch, bootMS, nil
}

const bootEntry = "/sys/boottime"

func (s *Segment) epoch() (epoch, bootMS int64, err error) {
	dir, err := s.directory(bootEntry)
	if err != nil {
		return 0, 0, fmt.Errorf("read stats segment: %w", err)
	}
	for _, entry := range dir.Entries {
		if at, ok := entry.Data.(adapter.ScalarStat); ok {
			return dir.Epoch, int64(float64(at) * 1000), nil
		}
	}
	return 0, 0, errors.New("read stats segment: it has no boot time")
}

// Package statseg reads VPP's stats segment: interface counters, boot time and memory use.
package statseg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
)

// Count is the traffic in one direction of an interface since VPP started or since its counters were cleared.
type Count struct{ Packets, Bytes uint64 }

// Reading has the values in the segment at one moment.
type Reading struct {
	BootMS    int64   // ms since the Unix epoch
	Epoch     int64   // epoch of the segment's directory, see ReopeningSegment.Epoch
	Heartbeat float64 // increases while VPP's collector runs, by default every 10 s
	Rx, Tx    []Count // by sw_if_index, summed over threads
	// Names are the names of the interfaces by sw_if_index. VPP reuses indices, so two readings may have
	// different interfaces at the same index.
	Names []string
	// Conform, Exceed and Violate are the counters of the policers by policer index, summed over threads. VPP
	// has these entries only after its first policer was created.
	Conform, Exceed, Violate []Count

	Losses  InterfaceLosses
	Errors  RouterErrors
	Buffers Buffers
}

// wanted lists the entries that a reading needs, without the entries of the buffer pools.
var wanted = append([]string{
	"/if/rx", "/if/tx", "/if/names", bootEntry, "/sys/heartbeat",
	"/net/policer/conform", "/net/policer/exceed", "/net/policer/violate",
}, lossEntries()...)

const (
	// bootWait is the time for which the agent waits for a missing socket while VPP starts. The socket of the
	// stats segment may appear after the socket of the API.
	bootWait = 2 * time.Second
	// noWait is the time to wait for a missing socket before a read that is repeated anyway.
	noWait = time.Millisecond
	// handOut is the longest time that VPP's main thread may take to send the segment to a new client.
	handOut = 2 * time.Second
)

var quiet = sync.OnceFunc(func() { statsclient.Log.SetOutput(io.Discard) })

// Segment is a mapping of one VPP's segment. The mapping of a dead VPP stays readable, but its values no
// longer change. So callers must compare BootMS with the boot time of the VPP that replies on the API socket.
type Segment struct {
	client    *statsclient.StatsClient
	index     directoryIndex
	lastEpoch int64 // the epoch of the last read
}

// Open maps the segment behind the socket. If the socket does not exist, Open waits for it until wait is
// over.
func Open(socket string, wait time.Duration) (*Segment, error) {
	quiet()
	client := statsclient.NewStatsClient(socket, statsclient.SetSocketRetryTimeout(wait))
	connected := make(chan error, 1)
	go func() { connected <- client.Connect() }()
	select {
	case err := <-connected:
		if err != nil {
			return nil, fmt.Errorf("open stats segment: %w", err)
		}
		return &Segment{client: client}, nil
	case <-time.After(wait + handOut):
		go func() {
			if <-connected == nil {
				_ = client.Disconnect()
			}
		}()
		return nil, errors.New("open stats segment: VPP does not provide it")
	}
}

// Close removes the mapping.
func (s *Segment) Close() { _ = s.client.Disconnect() }

// Read returns a reading.
func (s *Segment) Read() (Reading, error) {
	err := s.findIndices(wanted)
	if err != nil {
		return Reading{}, fmt.Errorf("read stats segment: %w", err)
	}
	dir, err := s.directory(append(slices.Clip(wanted), s.index.pools...)...)
	if err != nil {
		return Reading{}, fmt.Errorf("read stats segment: %w", err)
	}
	r := Reading{Epoch: dir.Epoch}
	var found int
	for _, entry := range dir.Entries {
		switch data := entry.Data.(type) {
		case adapter.ScalarStat:
			switch name := string(entry.Name); {
			case name == bootEntry:
				r.BootMS = int64(float64(data) * 1000)
				found++
			case isPool(name):
				r.Buffers.addPool(name, uint64(data))
			default:
				r.Heartbeat = float64(data)
			}
		case adapter.SimpleCounterStat:
			r.addSimple(string(entry.Name), data)
		case adapter.CombinedCounterStat:
			switch string(entry.Name) {
			case "/if/rx":
				r.Rx = sum(data)
				found++
			case "/if/tx":
				r.Tx = sum(data)
				found++
			case "/net/policer/conform":
				r.Conform = sum(data)
			case "/net/policer/exceed":
				r.Exceed = sum(data)
			case "/net/policer/violate":
				r.Violate = sum(data)
			}
		case adapter.NameStat:
			for _, name := range data {
				r.Names = append(r.Names, string(name))
			}
			found++
		}
	}
	if found != 4 {
		return Reading{}, fmt.Errorf("read stats segment: %d of 4 entries exist", found)
	}
	return r, nil
}

func sum(threads adapter.CombinedCounterStat) []Count {
	var counts []Count
	for _, thread := range threads {
		for i, c := range thread {
			if i == len(counts) {
				counts = append(counts, Count{})
			}
			counts[i].Packets += c.Packets()
			counts[i].Bytes += c.Bytes()
		}
	}
	return counts
}

// BootTime returns the start time of the VPP behind the socket (ms since the Unix epoch).
func BootTime(_ context.Context, socket string) (int64, error) {
	segment, err := Open(socket, bootWait)
	if err != nil {
		return 0, err
	}
	defer segment.Close()
	reading, err := segment.Read()
	return reading.BootMS, err
}

// TunnelCounters shows whether test frames arrived, and whether they arrived without fragmentation.
type TunnelCounters struct {
	// Rx and Tx count the frames that a tunnel has received and sent. VPP does not count the frames that a GRE
	// tunnel sends.
	Rx, Tx uint64
	// Fragmented counts the fragments that the router has sent. Reassembled counts the packets that were
	// addressed to the router and that it has reassembled. Both numbers include the packets of all tunnels
	// and programs. The IPv4 packets of a tunnel may be sent in fragments.
	Fragmented, Reassembled uint64
}

// TunnelCounters returns the counters of the tunnel with this index and name in the VPP that started at
// bootMS.
func (r *ReopeningSegment) TunnelCounters(bootMS int64, index uint32, name string) (TunnelCounters, error) {
	return readFrom(r, bootMS, func(s *Segment) (counters TunnelCounters, boot int64, err error) {
		reading, err := s.Read()
		if err != nil {
			return counters, 0, err
		}
		m := int(index)
		if m >= min(len(reading.Rx), len(reading.Tx), len(reading.Names)) || reading.Names[m] != name {
			return counters, 0, fmt.Errorf("read stats segment: it does not count for %s (sw_if_index %d)", name, index)
		}
		counters = TunnelCounters{
			Rx: reading.Rx[m].Packets, Tx: reading.Tx[m].Packets,
			Fragmented: orZero(reading.Errors.FragmentsSent), Reassembled: orZero(reading.Errors.Reassembled),
		}
		return counters, reading.BootMS, nil
	})
}

// orZero returns the value of a counter. It returns 0 for a counter that VPP does not have, because the
// counted event cannot happen in that VPP.
func orZero(count *uint64) uint64 {
	if count == nil {
		return 0
	}
	return *count
}

const (
	// busyRetries is the largest number of attempts to read while VPP rewrites the segment.
	busyRetries = 10
	// absentFor is the shortest time before the agent searches again for an entry that did not exist.
	absentFor = 30 * time.Second
)

// directoryIndex caches the positions of entries in the directory. VPP does not move an entry during a run of
// VPP. A search compares tens of thousands of names, because each interface has about twenty names.
type directoryIndex struct {
	indices map[string]uint32
	pools   []string             // names of the entries of buffer pools
	missed  map[string]time.Time // names that did not exist, with the time of the last search
	epoch   int64                // epoch at the last search; while the epoch is the same, VPP has added no entry
}

// directory returns the named entries and the epoch of the directory. It omits names without an entry.
func (s *Segment) directory(names ...string) (*adapter.StatDir, error) {
	if err := s.findIndices(names); err != nil {
		return nil, err
	}
	var indices []uint32
	for _, name := range names {
		if index, exists := s.index.indices[name]; exists {
			indices = append(indices, index)
		}
	}
	var dir *adapter.StatDir
	err := retryWhileBusy(func() (err error) {
		dir, err = s.client.PrepareDirOnIndex(indices...)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.lastEpoch = dir.Epoch
	for _, entry := range dir.Entries {
		if s.index.indices[string(entry.Name)] != entry.Index {
			s.index = directoryIndex{}
			return nil, errors.New("the directory has changed")
		}
	}
	return dir, nil
}

func (s *Segment) findIndices(names []string) error {
	var missing, quoted []string
	for _, name := range names {
		if _, exists := s.index.indices[name]; !exists && s.mayExistNow(name) {
			missing, quoted = append(missing, name), append(quoted, regexp.QuoteMeta(name))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	epoch := s.lastEpoch
	var found []adapter.StatIdentifier
	err := retryWhileBusy(func() (err error) {
		found, err = s.client.ListStats("^(?:" + strings.Join(append(quoted, poolsPattern), "|") + ")$")
		return err
	})
	if err != nil {
		return err
	}
	if s.index.indices == nil {
		s.index = directoryIndex{indices: make(map[string]uint32), missed: make(map[string]time.Time)}
	}
	s.index.epoch = epoch
	for _, name := range missing {
		s.index.missed[name] = time.Now()
	}
	for _, entry := range found {
		name := string(entry.Name)
		if _, known := s.index.indices[name]; !known && isPool(name) {
			s.index.pools = append(s.index.pools, name)
		}
		s.index.indices[name] = entry.Index
		delete(s.index.missed, name)
	}
	return nil
}

// mayExistNow reports whether a search for a name can succeed. It returns false if the last search for the
// name failed less than absentFor ago. It also returns false if the epoch has not changed since the last
// search, because VPP changes the epoch when it adds an entry. If no epoch has been read (its value is 0),
// only the time matters.
func (s *Segment) mayExistNow(name string) bool {
	missed, known := s.index.missed[name]
	return !known || time.Since(missed) >= absentFor && (s.lastEpoch == 0 || s.lastEpoch != s.index.epoch)
}

func retryWhileBusy(read func() error) (err error) {
	for range busyRetries {
		if err = read(); !errors.Is(err, adapter.ErrStatsDataBusy) && !errors.Is(err, adapter.ErrStatsAccessFailed) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

// Package statseg reads VPP's stats segment: interface counters, and who is alive.
package statseg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
)

// Count is one direction of an interface since VPP started or its counters were cleared.
type Count struct{ Packets, Bytes uint64 }

// Reading is the segment at one moment.
type Reading struct {
	BootMS    int64   // ms since the Unix epoch
	Epoch     int64   // of the segment's directory, see ReopeningSegment.Epoch
	Heartbeat float64 // grows while VPP's collector runs, by default every 10 s
	Rx, Tx    []Count // by sw_if_index, summed over threads
	// Names are the interfaces' by sw_if_index. VPP gives indices out again, and the one of what was counted
	// may be another's.
	Names []string
	// By index of the policer, summed over threads; VPP has none before its first policer.
	Conform, Exceed, Violate []Count

	Losses  InterfaceLosses
	Errors  RouterErrors
	Buffers Buffers
}

// wanted are the entries of the directory that a reading needs, the buffer pools' left out.
var wanted = append([]string{
	"/if/rx", "/if/tx", "/if/names", bootEntry, "/sys/heartbeat",
	"/net/policer/conform", "/net/policer/exceed", "/net/policer/violate",
}, lossEntries()...)

const (
	// bootWait is how long a missing socket is waited for while VPP starts: it may come after the API's.
	bootWait = 2 * time.Second
	// noWait is for later, when there is a next time.
	noWait = time.Millisecond
	// handOut is how long VPP's main thread may take to hand out the segment to whoever has connected.
	handOut = 2 * time.Second
)

var quiet = sync.OnceFunc(func() { statsclient.Log.SetOutput(io.Discard) })

// Segment is a mapping of one VPP's segment. The mapping of a dead VPP stays readable, with frozen numbers:
// whoever uses it compares BootMS with the VPP that answers on the API socket.
type Segment struct {
	client *statsclient.StatsClient
	index  directoryIndex
	seen   int64 // the epoch that was read last
}

// Open maps the segment behind the socket, and waits that long for the socket to appear.
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
		return nil, errors.New("open stats segment: VPP does not hand it out")
	}
}

// Close unmaps the segment.
func (s *Segment) Close() { _ = s.client.Disconnect() }

// Read takes a reading.
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
		return Reading{}, fmt.Errorf("read stats segment: %d of 4 entries are there", found)
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

// BootTime reads when the VPP now behind the socket started (ms since the Unix epoch).
func BootTime(_ context.Context, socket string) (int64, error) {
	segment, err := Open(socket, bootWait)
	if err != nil {
		return 0, err
	}
	defer segment.Close()
	reading, err := segment.Read()
	return reading.BootMS, err
}

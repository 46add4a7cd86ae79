package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/statseg"
)

// searchedAtOnce is the largest number of ends in one search.
const searchedAtOnce = 64

// vlanSearch is the result of a search for dropped frames.
type vlanSearch struct {
	searched []Access
	dropped  map[packettrace.VLAN]int
	why      error // nil, or the reason why the tracer could not be used
}

// ErrNoSuchVLAN says that VPP has no sub-interface of an end, or that the agent does not count its frames.
var ErrNoSuchVLAN = errors.New("report: VPP has no sub-interface of this end")

// RebuildVLAN starts a rebuild of an end's sub-interface at an operator's request, regardless of the results
// of earlier rebuilds. It returns ErrNoSuchVLAN, converge.ErrNotRepaired or an error of the disk.
func (r *Reporter) RebuildVLAN(end intent.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	access, known := r.vlans.access(end)
	if !known {
		return ErrNoSuchVLAN
	}
	return r.rebuild(r.now(), access, true)
}

// watchVLANs adds a reading of the counters. If a search has ended, watchVLANs rebuilds the ends for which
// the search has confirmed a loss of frames. Otherwise it starts a search for the ends for which the reading
// raises this suspicion.
func (r *Reporter) watchVLANs(ctx context.Context, now time.Time, reading statseg.Reading) vlanEvents {
	r.mu.Lock()
	defer r.mu.Unlock()
	suspects, events := r.vlans.take(now, reading, r.view.View)
	select {
	case search := <-r.found:
		for _, access := range r.vlans.judge(now, search.searched, search.dropped, search.why) {
			if err := r.rebuild(now, access, false); err != nil {
				r.log.Warn("VPP drops frames of an end, and its sub-interface is not rebuilt", "end", access.Key.String(), "interface", access.Name, "error", err)
			}
		}
	default:
		r.search(ctx, suspects[:min(len(suspects), searchedAtOnce)])
	}
	return events
}

// rebuild records on disk that a sub-interface is being rebuilt, and requests the rebuild. The caller holds
// the mutex mu.
func (r *Reporter) rebuild(now time.Time, access Access, requested bool) error {
	before := r.vlans.rebuilds.of(access.Key)
	if err := r.vlans.begin(now, access, requested); err != nil {
		return err
	}
	err := r.engine.Rebuild(access.Index, access.Name, requested)
	switch {
	case err != nil && before != nil:
		r.vlans.rebuilds.replace(*before) // after a failed rebuild, only an operator can start another one
	case err != nil:
		r.vlans.rebuilds.forget(access.Key)
	}
	return err
}

// search starts a goroutine that searches for dropped frames of these ends. It needs a goroutine because the
// search takes seconds. Only one search runs at a time. The caller holds the mutex mu.
func (r *Reporter) search(ctx context.Context, suspects []Access) {
	if len(suspects) == 0 || r.searchRuns {
		return
	}
	r.searchRuns = true
	boot := r.view.BootMS
	r.searching.Go(func() {
		dropped, err := r.unknownVLANs(ctx, boot, vlansOf(suspects))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.searchRuns = false
		select {
		case <-r.found: // the unread result of an earlier search
		default:
		}
		r.found <- vlanSearch{suspects, dropped, err}
	})
}

// unknownVLANs searches for frames that VPP drops as frames of these VLANs. It records on disk that it uses
// VPP's tracer. So if the agent is killed during the search, the agent can clear the tracer at its next
// start. If another user is using the tracer, unknownVLANs records nothing.
func (r *Reporter) unknownVLANs(ctx context.Context, boot int64, vlans []packettrace.VLAN) (map[packettrace.VLAN]int, error) {
	begun := false
	dropped, err := r.engine.UnknownVLANs(ctx, vlans, func() error {
		if err := r.noteTracing(boot); err != nil {
			return fmt.Errorf("it cannot be recorded on disk: %w", err)
		}
		begun = true
		r.log.Info("VPP's tracer is used to search for frames that VPP drops; a trace that has taken no packet yet, and a filter by node, end with this",
			"vlans", len(vlans))
		return nil
	})
	if _, left := errors.AsType[*packettrace.LeftError](err); begun && !left {
		if noted := r.noteTracing(0); noted != nil {
			r.log.Warn("the end of a search cannot be recorded on disk", "error", noted)
		}
	}
	return dropped, err
}

func (r *Reporter) noteTracing(boot int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.vlans.rebuilds.tracing(boot)
}

// tidyUp deletes the records of rebuilds of ends that the portal no longer requires. It also clears the
// tracer if a search could not do so, for example because the agent was killed.
func (r *Reporter) tidyUp(ctx context.Context, state *converge.ObservedState, status converge.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status.Intent != nil {
		r.vlans.rebuilds.keepOnly(status.Intent.Present)
	}
	left := r.vlans.rebuilds.kept.TracingBootMS
	if left == 0 || r.searchRuns {
		return
	}
	if left == state.Snapshot.Boot.MS {
		if err := r.engine.ClearTracer(ctx); err != nil {
			r.log.Warn("VPP's tracer may still contain packets of an earlier search", "error", err)
			return
		}
	}
	if err := r.vlans.rebuilds.tracing(0); err != nil {
		r.log.Warn("the end of a search cannot be recorded on disk", "error", err)
	}
}

func (r *Reporter) vlanLosses() map[intent.Key]VLANLoss {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.vlans.losses()
}

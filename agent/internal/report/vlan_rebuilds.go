package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/durable"
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

// rebuild records that a sub-interface is deleted and created again, because VPP dropped its frames or an
// operator requested it. The agent keeps the record until one of these events: frames arrive soon after the
// rebuild, the portal no longer requires the end, or an operator requests another rebuild.
type rebuild struct {
	VLL       string `json:"vll"`
	End       string `json:"end"`
	Interface string `json:"interface"`
	SinceMS   int64  `json:"since_ms"` // when frames last arrived; 0 if unknown
	BeganMS   int64  `json:"began_ms"`
	RebuiltMS int64  `json:"rebuilt_ms"` // 0 until a reading shows the new sub-interface
	Failed    bool   `json:"failed"`     // it was not carried out in time, or no frame arrived in time
	Recovered bool   `json:"recovered"`  // it failed, and frames arrived later
	Requested bool   `json:"requested"`  // by an operator
	Detail    string `json:"detail"`
	// made is Access.Made before the rebuild.
	made int64
}

func (r *rebuild) key() intent.Key { return intent.Key{VLL: r.VLL, End: r.End} }

// rebuilds stores the rebuilds in a file of the agent's folder, so that a restart of the agent does not cause
// another rebuild.
type rebuilds struct {
	path string // "" if the agent has no folder
	log  *slog.Logger
	kept rebuildsFile
}

type rebuildsFile struct {
	Ends []rebuild `json:"ends"`
	// TracingBootMS is the boot time (Unix time in ms) of the VPP whose tracer the agent is using for a search,
	// otherwise 0. It stays set if the agent is killed during a search, or cannot clear the tracer afterwards.
	TracingBootMS int64 `json:"tracing_boot_ms"`
}

// openRebuilds reads the file in the folder. If the agent ended during a rebuild, nobody knows whether the
// rebuild was carried out. openRebuilds counts such a rebuild as carried out. A file that cannot be read is
// set aside.
func openRebuilds(folder string, log *slog.Logger) (*rebuilds, *durable.SetAsideFile) {
	r := &rebuilds{log: log}
	if folder == "" {
		return r, nil
	}
	r.path = filepath.Join(folder, "rebuilds.json")
	data, err := os.ReadFile(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r.kept)
	}
	if err != nil {
		r.kept = rebuildsFile{}
		return r, new(durable.SetAside(r.path, fmt.Errorf("rebuilds: %w", err)))
	}
	for n := range r.kept.Ends {
		if r.kept.Ends[n].RebuiltMS == 0 {
			r.kept.Ends[n].RebuiltMS = r.kept.Ends[n].BeganMS
		}
	}
	return r, nil
}

// of returns a copy of the record of an end, or nil if there is none.
func (r *rebuilds) of(key intent.Key) *rebuild {
	at := slices.IndexFunc(r.kept.Ends, func(each rebuild) bool { return each.key() == key })
	if at < 0 {
		return nil
	}
	return new(r.kept.Ends[at])
}

// begin records a rebuild on disk before the rebuild is carried out. If begin returns an error of the disk,
// the rebuild must not be carried out.
func (r *rebuilds) begin(begun rebuild) error {
	return r.keep(rebuildsFile{append(r.without(begun.key()), begun), r.kept.TracingBootMS})
}

// keep replaces the records on disk and in memory, or neither.
func (r *rebuilds) keep(records rebuildsFile) error {
	before := r.kept
	r.kept = records
	err := r.write()
	if err != nil {
		r.kept = before
	}
	return err
}

// replace records the result of a rebuild. If the result cannot be written to disk, it is kept in memory
// until the agent ends.
func (r *rebuilds) replace(changed rebuild) {
	r.kept.Ends = append(r.without(changed.key()), changed)
	r.writeOrLog()
}

func (r *rebuilds) forget(key intent.Key) {
	r.kept.Ends = r.without(key)
	r.writeOrLog()
}

// keepOnly deletes the records of ends that the portal no longer requires.
func (r *rebuilds) keepOnly(wanted []intent.End) {
	kept := slices.DeleteFunc(slices.Clone(r.kept.Ends), func(each rebuild) bool {
		return !slices.ContainsFunc(wanted, func(end intent.End) bool { return end.Key == each.key() })
	})
	if len(kept) != len(r.kept.Ends) {
		r.kept.Ends = kept
		r.writeOrLog()
	}
}

// tracing records TracingBootMS on disk.
func (r *rebuilds) tracing(bootMS int64) error { return r.keep(rebuildsFile{r.kept.Ends, bootMS}) }

func (r *rebuilds) without(key intent.Key) []rebuild {
	return slices.DeleteFunc(slices.Clone(r.kept.Ends), func(each rebuild) bool { return each.key() == key })
}

func (r *rebuilds) writeOrLog() {
	if err := r.write(); err != nil {
		r.log.Error("the result of a rebuild could not be stored", "error", err)
	}
}

func (r *rebuilds) write() error {
	if r.path == "" {
		return nil
	}
	data, err := json.Marshal(r.kept)
	if err != nil {
		return err
	}
	return durable.Replace(r.path, data)
}

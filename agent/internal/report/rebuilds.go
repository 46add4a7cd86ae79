package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/intent"
)

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

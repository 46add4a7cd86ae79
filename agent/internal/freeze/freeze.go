// Package freeze stores freezes. During a freeze, the agent does not change VPP. A person requests the
// freeze, and it survives restarts of the agent.
package freeze

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"longline.dev/agent/internal/durable"
)

// Those who can freeze a router.
const (
	ByPortal = "portal"
	ByRouter = "router"
)

// Longest is the maximum duration of a freeze. An operator who needs more time begins another freeze.
const Longest = 30 * 24 * time.Hour

// Freeze describes a freeze. It exists from the beginning of the freeze until an operator has acknowledged
// the remaining differences.
type Freeze struct {
	ID      string `json:"id"`
	By      string `json:"by"`
	Reason  string `json:"reason"`
	SinceMS int64  `json:"since_ms"`
	UntilMS int64  `json:"until_ms"`
	Ended   bool   `json:"ended"` // ended early
}

// Over reports whether the freeze has ended. After the end, the agent repairs nothing until an operator has
// acknowledged the differences.
func (f *Freeze) Over(now time.Time) bool { return f.Ended || now.UnixMilli() >= f.UntilMS }

// Shown is a freeze in reports and responses. It says whether the freeze is over, but not whether the freeze
// ended early.
type Shown struct {
	ID      string `json:"id"`
	By      string `json:"by"`
	Reason  string `json:"reason"`
	SinceMS int64  `json:"since_ms"`
	UntilMS int64  `json:"until_ms"`
	Over    bool   `json:"over"`
}

// Shown returns the freeze for reports and responses. It returns nil if f is nil.
func (f *Freeze) Shown(now time.Time) *Shown {
	if f == nil {
		return nil
	}
	return &Shown{f.ID, f.By, f.Reason, f.SinceMS, f.UntilMS, f.Over(now)}
}

// ErrNone says that there is no freeze to end.
var ErrNone = errors.New("this router is not frozen")

// OtherError says that another person's freeze is already in force.
type OtherError struct{ Freeze }

func (e *OtherError) Error() string {
	return fmt.Sprintf("it is frozen already, by the %s (%s), until %s", e.By, e.Reason, time.UnixMilli(e.UntilMS).UTC().Format(time.RFC3339))
}

// File stores the freeze of a router. It is safe for concurrent use.
type File struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	current *Freeze
}

// NoFile returns a File that stores the freeze in memory only.
func NoFile(now func() time.Time) *File { return &File{now: now} }

// Open reads the file in the folder. If the file cannot be read, Open returns an error. After this error, the
// agent must not assume that there is no freeze.
func Open(folder string, now func() time.Time) (*File, error) {
	f := &File{path: filepath.Join(folder, "freeze.json"), now: now}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f.current)
	}
	if err != nil {
		return nil, fmt.Errorf("%s contains the freeze of this router and cannot be read; inspect it, and remove it to unfreeze the router: %w", f.path, err)
	}
	return f, nil
}

// Current returns a copy of the freeze. It is nil if the router is not frozen and no acknowledgement is
// pending.
func (f *File) Current() *Freeze {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		return nil
	}
	return new(*f.current)
}

// Begin freezes the router from now on until the given time, or changes the end of the same freeze. A freeze
// by the portal replaces the portal's previous freeze, because the agent may not have received the end of the
// previous freeze. Begin returns *OtherError, or an error of the disk. After an error, the freeze is as it
// was before the call.
func (f *File) Begin(id, by, reason string, until time.Time) (*Freeze, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	bothOfPortal := f.current != nil && f.current.By == ByPortal && by == ByPortal
	if f.current != nil && f.current.ID != id && !f.current.Over(f.now()) && !bothOfPortal {
		return nil, &OtherError{*f.current}
	}
	begun := &Freeze{ID: id, By: by, Reason: reason, SinceMS: f.now().UnixMilli(), UntilMS: until.UnixMilli()}
	if f.current != nil {
		begun.SinceMS = f.current.SinceMS // the differences since the last freeze began have to be acknowledged too
	}
	if f.current != nil && *begun == *f.current {
		return begun, nil
	}
	return begun, f.replace(begun)
}

// End ends the freeze early. A freeze that is over stays unchanged. End returns ErrNone or an error of the
// disk.
func (f *File) End() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		return ErrNone
	}
	if f.current.Over(f.now()) {
		return nil
	}
	ended := *f.current
	ended.Ended = true
	return f.replace(&ended)
}

// Forget deletes a freeze that is over. It does nothing if the freeze is still in force. Before the call, the
// caller checks that VPP does not differ from the intent, or that an operator has acknowledged the
// differences.
func (f *File) Forget() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil || !f.current.Over(f.now()) {
		return nil
	}
	return f.replace(nil)
}

func (f *File) replace(current *Freeze) error {
	if f.path != "" {
		if err := f.write(current); err != nil {
			return err
		}
	}
	f.current = current
	return nil
}

func (f *File) write(current *Freeze) error {
	if current == nil {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return durable.SyncFolder(filepath.Dir(f.path))
	}
	data, err := json.Marshal(current)
	if err != nil {
		return err
	}
	return durable.Replace(f.path, data)
}

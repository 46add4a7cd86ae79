// Package freeze remembers that VPP is left alone for a while, on somebody's word and over restarts of the agent.
package freeze

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"longline.dev/agent/internal/durable"
)

// Who froze the router.
const (
	ByPortal = "portal"
	ByRouter = "router"
)

// Longest is how long a freeze may last; somebody who needs more begins another.
const Longest = 30 * 24 * time.Hour

// Freeze is one from its beginning until somebody has looked at what it left.
type Freeze struct {
	ID      string `json:"id"`
	By      string `json:"by"`
	Reason  string `json:"reason"`
	SinceMS int64  `json:"since_ms"`
	UntilMS int64  `json:"until_ms"`
	Ended   bool   `json:"ended"` // before its time
}

// Over is true once it has ended: nothing is repaired still, until somebody has looked.
func (f *Freeze) Over(now time.Time) bool { return f.Ended || now.UnixMilli() >= f.UntilMS }

// Shown is a freeze in reports and answers: that it is over, and not whether that was before its time.
type Shown struct {
	ID      string `json:"id"`
	By      string `json:"by"`
	Reason  string `json:"reason"`
	SinceMS int64  `json:"since_ms"`
	UntilMS int64  `json:"until_ms"`
	Over    bool   `json:"over"`
}

// Shown is nil for none.
func (f *Freeze) Shown(now time.Time) *Shown {
	if f == nil {
		return nil
	}
	return &Shown{f.ID, f.By, f.Reason, f.SinceMS, f.UntilMS, f.Over(now)}
}

// ErrNone says that there is no freeze to end.
var ErrNone = errors.New("this router is not frozen")

// OtherError says that a freeze of somebody else's stands already.
type OtherError struct{ Freeze }

func (e *OtherError) Error() string {
	return fmt.Sprintf("it is frozen already, by the %s (%s), until %s", e.By, e.Reason, time.UnixMilli(e.UntilMS).UTC().Format(time.RFC3339))
}

// File holds the freeze of a router; safe for use by several goroutines.
type File struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	held *Freeze
}

// NoFile remembers as long as the agent runs.
func NoFile(now func() time.Time) *File { return &File{now: now} }

// Open reads the file in the folder. Error: what stands there cannot be read: the agent must not take that for
// no freeze.
func Open(folder string, now func() time.Time) (*File, error) {
	f := &File{path: filepath.Join(folder, "freeze.json"), now: now}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f.held)
	}
	if err != nil {
		return nil, fmt.Errorf("%s says whether this router is frozen and cannot be read; look at it, and remove it to unfreeze the router: %w", f.path, err)
	}
	return f, nil
}

// Held is a copy; nil where the router is not frozen and nobody has to look.
func (f *File) Held() *Freeze {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		return nil
	}
	held := *f.held
	return &held
}

// Begin freezes the router from now on until then, or tells the same freeze another end. The portal's takes the place of
// its own last one, whose end the agent may not have heard of. Error: *OtherError, or that it is not on disk, and then it
// is not frozen.
func (f *File) Begin(id, by, reason string, until time.Time) (*Freeze, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	bothOfPortal := f.held != nil && f.held.By == ByPortal && by == ByPortal
	if f.held != nil && f.held.ID != id && !f.held.Over(f.now()) && !bothOfPortal {
		return nil, &OtherError{*f.held}
	}
	begun := &Freeze{ID: id, By: by, Reason: reason, SinceMS: f.now().UnixMilli(), UntilMS: until.UnixMilli()}
	if f.held != nil {
		begun.SinceMS = f.held.SinceMS // what happened before the end of the last one has to be looked at too
	}
	if f.held != nil && *begun == *f.held {
		return begun, nil
	}
	return begun, f.replace(begun)
}

// BeginHere is Begin on an operator's word on the router.
func (f *File) BeginHere(reason string, until time.Time) (*Freeze, error) {
	return f.Begin(uuid.NewString(), ByRouter, reason, until)
}

// End ends the freeze before its time; what is over stays so. Error: ErrNone, or that it is not on disk.
func (f *File) End() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		return ErrNone
	}
	if f.held.Over(f.now()) {
		return nil
	}
	ended := *f.held
	ended.Ended = true
	return f.replace(&ended)
}

// Forget forgets a freeze that is over: somebody has looked, or there is nothing to look at.
func (f *File) Forget() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil || !f.held.Over(f.now()) {
		return nil
	}
	return f.replace(nil)
}

func (f *File) replace(held *Freeze) error {
	if f.path != "" {
		if err := f.write(held); err != nil {
			return err
		}
	}
	f.held = held
	return nil
}

func (f *File) write(held *Freeze) error {
	if held == nil {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return durable.SyncFolder(filepath.Dir(f.path))
	}
	data, err := json.Marshal(held)
	if err != nil {
		return err
	}
	return durable.Replace(f.path, data)
}

package freeze

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAFreezeSurvivesARestartOfTheAgent(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	clock := func() time.Time { return now }
	open := func() *File {
		t.Helper()
		f, err := Open(folder, clock)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	if f.Current() != nil || !errors.Is(f.End(), ErrNone) {
		t.Fatal("frozen without a word")
	}
	begun, err := f.Begin("1", ByRouter, "line cards", now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	f = open()
	if current := f.Current(); current == nil || *current != *begun || current.Over(now) {
		t.Fatalf("stored %+v, want %+v", current, begun)
	}
	if err := f.Forget(); err != nil || f.Current() == nil {
		t.Fatal("it is forgotten before it is over")
	}
	now = now.Add(time.Hour)
	if current := f.Current(); !current.Over(now) {
		t.Fatalf("not over: %+v", current)
	}
	later, err := f.Begin("2", ByRouter, "again", now.Add(time.Hour))
	if err != nil || later.SinceMS != begun.SinceMS {
		t.Fatalf("%+v, %v: not acknowledged since %d", later, err, begun.SinceMS)
	}
	if err := errors.Join(f.End(), f.Forget()); err != nil || f.Current() != nil || open().Current() != nil {
		t.Fatalf("it stays: %v", err)
	}
}

// The agent may not have received the end of the portal's previous freeze.
func TestAFreezeByThePortalReplacesItsPreviousOneButNotAnOperators(t *testing.T) {
	now := time.Now()
	f := NoFile(func() time.Time { return now })
	first, err := f.Begin("1", ByPortal, "line cards", now.Add(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	second, err := f.Begin("2", ByPortal, "power", now.Add(time.Hour))
	if err != nil || *f.Current() != *second || second.Reason != "power" || second.SinceMS != first.SinceMS {
		t.Fatalf("stored %+v, %v", f.Current(), err)
	}
	if err := errors.Join(f.End(), f.Forget()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Begin("router", ByRouter, "hands off", now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	var other *OtherError
	if _, err := f.Begin("3", ByPortal, "power", now.Add(time.Hour)); !errors.As(err, &other) {
		t.Fatalf("the portal took the place of the operator's: %v", err)
	}
}

func TestAnUnreadableFileIsAnErrorAndNotNoFreeze(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "freeze.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder, time.Now); err == nil {
		t.Fatal("it was opened")
	}
}

package durable

import (
	"errors"
	"testing"
)

func TestOnlyOneProcessLocksAFolderAtATime(t *testing.T) {
	folder := t.TempDir()
	first, err := Lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(folder); !errors.Is(err, ErrLocked) {
		t.Errorf("the second got %v", err)
	}
	first.Close()
	again, err := Lock(folder)
	if err != nil {
		t.Fatalf("after the first was unlocked: %v", err)
	}
	again.Close()
}

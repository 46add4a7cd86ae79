package spool

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestUnreadablePositionIsSetAsideAndAllRecordsAreReturned(t *testing.T) {
	for name, content := range map[string][]byte{
		"empty": nil, "zeros": make([]byte, 60), "torn": []byte(`{"segment":1,"off`), "of another kind": []byte(`[1, 2]`),
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			s := open(t, folder, room)
			add(t, s, "one", "two", "three")
			take(t, s, 1, false)
			path := filepath.Join(folder, positionName)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			s = open(t, folder, room)
			mustContain(t, s, "one", "two", "three")
			add(t, s, "four")
			take(t, s, 3, false)
			mustContain(t, s, "four")
			kept, err := os.ReadFile(path + ".set-aside")
			if aside := s.SetAside(); err != nil || !bytes.Equal(kept, content) || aside == nil || aside.Path != path+".set-aside" || aside.Why == "" {
				t.Errorf("kept %q, %v, and says %+v", kept, err, aside)
			}
			s = open(t, folder, room)
			mustContain(t, s, "four")
			if s.SetAside() != nil {
				t.Error("set aside again")
			}
		})
	}
}

func TestUnusableFolderIsOpenedAsSoonAsItIsUsable(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "counters")
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // removing the permission to write would not stop root
		t.Fatal(err)
	}
	s := open(t, folder, room)
	if err := s.Append([]byte("one")); err == nil {
		t.Error("no error for a failed write")
	}
	if _, err := s.Oldest(10); err == nil {
		t.Error("no error for a failed read")
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	add(t, s, "two")
	mustContain(t, s, "two")
	if s.Dropped() != 1 {
		t.Errorf("dropped %d", s.Dropped())
	}
}

package identity_test

import (
	"os"
	"path/filepath"
	"testing"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/identity/identitytest"
)

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestAnInterruptedInstallIsCompleted covers every state that a crash can leave.
func TestAnInterruptedInstallIsCompleted(t *testing.T) {
	for name, renamed := range map[string]int{"nothing renamed": 0, "the CA renamed": 1, "CA and key renamed": 2} {
		t.Run(name, func(t *testing.T) {
			older, newer := identitytest.New(t), identitytest.New(t)
			old, fresh := older.Issue("rhino", identity.Router("rhino")), newer.Issue("rhino", identity.Router("rhino"))
			paths := []string{old.CA, old.Key, old.Certificate}
			for i, from := range []string{fresh.CA, fresh.Key, fresh.Certificate} {
				to := paths[i]
				if i >= renamed {
					to += ".new"
				}
				move(t, from, to)
			}
			if _, err := identity.Load(old, "rhino"); err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				if _, err := os.Stat(path + ".new"); !os.IsNotExist(err) {
					t.Errorf("%s.new is left: %v", path, err)
				}
			}
		})
	}
}

func TestAnIncompletelyWrittenInstallChangesNothing(t *testing.T) {
	files := identitytest.New(t).Issue("rhino", identity.Router("rhino"))
	for _, path := range []string{files.CA, files.Key} {
		if err := os.WriteFile(path+".new", []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := identity.Load(files, "rhino"); err != nil {
		t.Fatal(err)
	}
}

func TestAnInstallReplacesAllThree(t *testing.T) {
	folder := t.TempDir()
	paths := config.TLS{
		CA: filepath.Join(folder, "ca"), Certificate: filepath.Join(folder, "certificate"), Key: filepath.Join(folder, "key"),
	}
	if err := os.WriteFile(identity.PendingKey(paths), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := identity.Install(paths, []byte("certificate"), []byte("ca")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{paths.CA: "ca", paths.Certificate: "certificate", paths.Key: "key"} {
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s contains %q, %v", path, got, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

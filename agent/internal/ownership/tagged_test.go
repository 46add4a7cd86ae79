package ownership

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"longline.dev/agent/internal/intent"
)

func markOf(n int) Mark {
	return Mark{Tag{intent.Key{VLL: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), End: "a"}, int32(n + 1)}, uint64(n) << 32}
}

func opened(t *testing.T, folder string) *JournalFile {
	t.Helper()
	journal, err := OpenJournal(folder)
	if err != nil {
		t.Fatal(err)
	}
	return journal
}

func tag(t *testing.T, journal *JournalFile, boot Boot, marked Tagged, gone ...uint32) {
	t.Helper()
	if err := journal.Tag(boot, marked, gone); err != nil {
		t.Fatal(err)
	}
}

func wantTagged(t *testing.T, journal *JournalFile, boot Boot, want Tagged) {
	t.Helper()
	if got := journal.Of(boot).Tagged; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTagsAreKeptUntilTheInterfaceIsGoneOrVPPRestarts(t *testing.T) {
	folder, here := t.TempDir(), Boot{PID: 7, MS: 1000}
	journal := opened(t, folder)
	tag(t, journal, here, Tagged{3: markOf(1), 4: markOf(2), 5: markOf(3)})
	tag(t, journal, here, Tagged{5: markOf(4)}, 3)
	want := Tagged{4: markOf(2), 5: markOf(4)}
	wantTagged(t, journal, here, want)
	wantTagged(t, opened(t, folder), here, want)
	for name, other := range map[string]Boot{"another boot time": {PID: 7, MS: 2000}, "another process": {PID: 8}} {
		if got := journal.Of(other).Tagged; len(got) != 0 {
			t.Errorf("%s: got %v", name, got)
		}
	}
	wantTagged(t, opened(t, folder), Boot{PID: 7}, want) // the stats segment cannot be read now
	again := opened(t, folder)
	tag(t, again, Boot{PID: 7}, Tagged{6: markOf(5)})
	want[6] = markOf(5)
	wantTagged(t, opened(t, folder), here, want)
	tag(t, again, here, nil)
	next := Boot{PID: 7, MS: 3000}
	tag(t, again, next, Tagged{1: markOf(6)})
	wantTagged(t, opened(t, folder), next, Tagged{1: markOf(6)})
}

// TestDamagedListOfTagsKeepsTheLinesBeforeTheDamage also adds a tag afterwards.
func TestDamagedListOfTagsKeepsTheLinesBeforeTheDamage(t *testing.T) {
	here := Boot{PID: 7, MS: 1000}
	for name, damage := range map[string]func([]byte) []byte{
		"cut off":    func(data []byte) []byte { return data[:len(data)-5] },
		"no newline": func(data []byte) []byte { return data[:len(data)-1] },
		"zeros":      func(data []byte) []byte { return append(data[:len(data)-5], 0, 0, 0, 0, 0) },
		"another":    func(data []byte) []byte { return append(data, "9 vppcfg:7 1\n"...) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			journal := opened(t, folder)
			tag(t, journal, here, Tagged{3: markOf(1)})
			tag(t, journal, here, Tagged{4: markOf(2)})
			path := filepath.Join(folder, "tagged.log")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			want := Tagged{3: markOf(1)}
			if name == "another" {
				want[4] = markOf(2)
			}
			again := opened(t, folder)
			wantTagged(t, again, here, want)
			tag(t, again, here, Tagged{5: markOf(3)})
			want[5] = markOf(3)
			wantTagged(t, opened(t, folder), here, want)
		})
	}
}

func TestFailedWriteOfTagsIsRepeatedWithTheNextChange(t *testing.T) {
	folder, here := t.TempDir(), Boot{PID: 7, MS: 1000}
	journal := opened(t, folder)
	tag(t, journal, here, Tagged{3: markOf(1)})
	path := filepath.Join(folder, "tagged.log")
	blocked := filepath.Join(path, "full") // removing the permission to write would not stop root
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := journal.Tag(here, Tagged{4: markOf(2)}, nil); err == nil {
		t.Error("no error")
	}
	wantTagged(t, journal, here, Tagged{3: markOf(1), 4: markOf(2)})
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	tag(t, journal, here, nil)
	wantTagged(t, opened(t, folder), here, Tagged{3: markOf(1), 4: markOf(2)})
}

func TestListOfTagsIsRewrittenWhenItIsLong(t *testing.T) {
	folder, here := t.TempDir(), Boot{PID: 7, MS: 1000}
	journal := opened(t, folder)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(folder, "tagged.log"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	most := int64(0)
	for n := range 3 * spareLines {
		tag(t, journal, here, Tagged{uint32(n % 2): markOf(n)})
		most = max(most, size())
	}
	if per := int64(len("1 " + markOf(3000).String() + " ffffffffffff\n")); most > (spareLines+10)*per {
		t.Errorf("%d bytes for two interfaces", most)
	}
	wantTagged(t, opened(t, folder), here, Tagged{0: markOf(3*spareLines - 2), 1: markOf(3*spareLines - 1)})
}

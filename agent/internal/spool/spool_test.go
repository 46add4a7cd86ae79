package spool

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const room = 1 << 20

func open(t *testing.T, folder string, limit int64) *Spool {
	t.Helper()
	s := Open(folder, limit)
	t.Cleanup(func() { s.Close() })
	return s
}

func add(t *testing.T, s *Spool, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := s.Append([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

func oldest(t *testing.T, s *Spool, n int) []Record {
	t.Helper()
	records, err := s.Oldest(n)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func texts(records []Record) []string {
	var all []string
	for _, r := range records {
		all = append(all, string(r.Data))
	}
	return all
}

func mustContain(t *testing.T, s *Spool, want ...string) {
	t.Helper()
	if got := texts(oldest(t, s, 1000)); !slices.Equal(got, want) {
		t.Errorf("contains %v, want %v", got, want)
	}
	if s.Waiting() != int64(len(want)) {
		t.Errorf("says that %d wait, want %d", s.Waiting(), len(want))
	}
}

func take(t *testing.T, s *Spool, n int, refused bool) {
	t.Helper()
	records := oldest(t, s, n)
	if err := s.Take(records, refused); err != nil {
		t.Fatal(err)
	}
}

func segmentFiles(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

func TestOldestReturnsRecordsInOrderUntilTheyAreTaken(t *testing.T) {
	s := open(t, t.TempDir(), room)
	add(t, s, "one", "two", "three")
	mustContain(t, s, "one", "two", "three")
	take(t, s, 2, false)
	mustContain(t, s, "three")
	add(t, s, "four")
	mustContain(t, s, "three", "four")
	if s.Dropped() != 0 {
		t.Errorf("dropped %d", s.Dropped())
	}
}

func TestRecordsSurviveARestartUntilTheyAreTaken(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, room)
	add(t, s, "one", "two", "three")
	take(t, s, 1, false)
	s = open(t, folder, room) // the first process was killed, so it closed nothing
	mustContain(t, s, "two", "three")
	add(t, s, "four")
	s = open(t, folder, room)
	mustContain(t, s, "two", "three", "four")
	take(t, s, 3, false)
	s = open(t, folder, room)
	mustContain(t, s)
	add(t, s, "five")
	mustContain(t, s, "five")
}

func TestIncompleteLastRecordIsIgnoredAtEveryLength(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, room)
	add(t, s, "one", "two", "the last one")
	file := segmentFiles(t, folder)[0]
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for length := len(whole) - len("the last one") - frameHeader; length < len(whole); length++ {
		for name, tail := range map[string][]byte{"cut": nil, "zeros": make([]byte, len(whole)-length)} {
			t.Run(fmt.Sprint(length, name), func(t *testing.T) {
				folder := t.TempDir()
				torn := append(slices.Clone(whole[:length]), tail...)
				if err := os.WriteFile(segmentPath(folder, 1), torn, 0o600); err != nil {
					t.Fatal(err)
				}
				s := open(t, folder, room)
				add(t, s, "after")
				if got := texts(oldest(t, s, 10)); !slices.Equal(got, []string{"one", "two", "after"}) {
					t.Errorf("contains %v", got)
				}
			})
		}
	}
}

func TestDamageDropsAndCountsTheRestOfItsSegment(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, room)
	add(t, s, "one", "two", "three")
	s = open(t, folder, room)
	add(t, s, "four")
	file := segmentFiles(t, folder)[0]
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(data, []byte("two"), []byte("owt"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	mustContain(t, s, "one", "four")
	if s.Dropped() != 2 {
		t.Errorf("dropped %d, want two and three", s.Dropped())
	}
}

func TestFullSpoolDropsTheOldestAndKeepsTheCount(t *testing.T) {
	folder := t.TempDir()
	const limit, size, n = 16 << 10, 256 - frameHeader, 200
	s := open(t, folder, limit)
	for i := range n {
		add(t, s, fmt.Sprintf("%0*d", size, i))
		var bytes int64
		for _, file := range segmentFiles(t, folder) {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			bytes += info.Size()
		}
		if bytes > limit {
			t.Fatalf("%d bytes on disk, limit %d", bytes, limit)
		}
	}
	records := oldest(t, s, n)
	if int64(len(records))+s.Dropped() != n || s.Waiting() != int64(len(records)) || s.Dropped() == 0 {
		t.Errorf("%d are there and %d dropped of %d", len(records), s.Dropped(), n)
	}
	for i, r := range records {
		if want := fmt.Sprintf("%0*d", size, n-len(records)+i); string(r.Data) != want {
			t.Fatalf("record %d is %s", i, r.Data)
		}
	}
	dropped := s.Dropped()
	if again := open(t, folder, limit); again.Dropped() != dropped {
		t.Errorf("after a restart dropped is %d, before %d", again.Dropped(), dropped)
	}
}

func TestTakeIgnoresRecordsThatWereDroppedInTheMeantime(t *testing.T) {
	const limit, size = 4 << 10, 200
	s := open(t, t.TempDir(), limit)
	record := func(i int) string { return fmt.Sprintf("%0*d", size, i) }
	add(t, s, record(0), record(1))
	sent := oldest(t, s, 1)
	for i := range 100 {
		add(t, s, record(i+2))
	}
	waiting, dropped := s.Waiting(), s.Dropped()
	if err := s.Take(sent, false); err != nil || s.Waiting() != waiting || s.Dropped() != dropped {
		t.Errorf("%d wait and %d dropped, before %d and %d: %v", s.Waiting(), s.Dropped(), waiting, dropped, err)
	}
}

func TestTakeCountsRefusedRecordsAsDropped(t *testing.T) {
	s := open(t, t.TempDir(), room)
	add(t, s, "one", "two", "three")
	take(t, s, 2, true)
	mustContain(t, s, "three")
	if s.Dropped() != 2 {
		t.Errorf("dropped %d", s.Dropped())
	}
}

func TestAppendContinuesAfterAWriteError(t *testing.T) {
	s := open(t, t.TempDir(), room)
	add(t, s, "one")
	s.writing.Close() // simulates a disk that fails
	if err := s.Append([]byte("two")); err == nil {
		t.Fatal("no error for a failed write")
	}
	add(t, s, "three")
	mustContain(t, s, "one", "three")
	if s.Dropped() != 1 {
		t.Errorf("dropped %d", s.Dropped())
	}
	for name, data := range map[string][]byte{"nothing": nil, "more than all the room": make([]byte, room)} {
		if err := s.Append(data); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// TestRandomOperationsLoseAndAddNoRecords compares the spool with a plain list during random operations and
// restarts.
func TestRandomOperationsLoseAndAddNoRecords(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 7))
		folder, want, next := t.TempDir(), []string(nil), 0
		s := open(t, folder, room)
		for range 150 {
			switch random.IntN(4) {
			case 0, 1:
				text := fmt.Sprintf("%d-%s", next, bytes.Repeat([]byte("x"), random.IntN(2000)))
				next++
				add(t, s, text)
				want = append(want, text)
			case 2:
				if n := random.IntN(4); n > 0 && len(want) > 0 {
					take(t, s, n, false)
					want = want[min(n, len(want)):]
				}
			case 3:
				s = open(t, folder, room)
			}
			if got := texts(oldest(t, s, 1000)); !slices.Equal(got, want) || s.Waiting() != int64(len(want)) || s.Dropped() != 0 {
				t.Fatalf("seed %d: contains %d records and says %d, want %d; dropped %d", seed, len(got), s.Waiting(), len(want), s.Dropped())
			}
		}
	}
}

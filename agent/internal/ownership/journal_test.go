package ownership

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var boot = Boot{PID: 7, MS: 1000}

func TestJournalIsReadAgainAfterARestartOfTheAgent(t *testing.T) {
	folder := t.TempDir()
	journal, err := OpenJournal(folder)
	if err != nil {
		t.Fatal(err)
	}
	claimed := Journal{Boot: boot, Claims: []Claim{{VLL: "v", End: "a", Revision: 3, Port: "cust1"}}, Applied: 9}
	for name, write := range map[string]func(Journal) error{"claimed": journal.Claim, "noted": journal.Note} {
		t.Run(name, func(t *testing.T) {
			if err := write(claimed); err != nil {
				t.Fatal(err)
			}
			again, err := OpenJournal(folder)
			if err != nil || again.Lost() != nil {
				t.Fatal(err, again.Lost())
			}
			if got := again.Of(boot); got.Applied != 9 || len(got.Claims) != 1 || got.Claims[0] != claimed.Claims[0] {
				t.Errorf("got %+v", got)
			}
			if got := again.Of(Boot{PID: 7, MS: 2000}); got.Applied != 0 || got.Claims != nil {
				t.Errorf("another run of VPP has %+v", got)
			}
		})
		claimed.Boot.PID++
		boot.PID++
	}
}

// TestClaimsOfPortsNeedTheSameProcessWithoutABootTime covers VPP in a container, where each run may have
// the same process number. The agent adopts objects by their keys alone. It keeps the claim of a port only
// as far as the state of VPP confirms it.
func TestClaimsOfPortsNeedTheSameProcessWithoutABootTime(t *testing.T) {
	port := Claim{VLL: "v", End: "a", Revision: 3, Port: "cust1"}
	tunnel := Claim{VLL: "v", End: "a", Revision: 3, Tunnel: &Tunnel{VNI: 7}}
	for name, c := range map[string]struct {
		then, now     Boot
		ports, others bool
	}{
		"both known":                  {Boot{7, 1000}, Boot{7, 1000}, true, true},
		"both known, and not one run": {Boot{7, 1000}, Boot{7, 2000}, false, false},
		"known then":                  {Boot{7, 1000}, Boot{7, 0}, true, false},
		"known now":                   {Boot{7, 0}, Boot{7, 1000}, true, false},
		"never known":                 {Boot{7, 0}, Boot{7, 0}, true, false},
		"another process":             {Boot{7, 0}, Boot{8, 0}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			journal, err := OpenJournal(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := journal.Claim(Journal{Boot: c.then, Claims: []Claim{port, tunnel}, Applied: 9}); err != nil {
				t.Fatal(err)
			}
			got := journal.Of(c.now)
			if slices.Contains(got.Claims, port) != c.ports || slices.Contains(got.Claims, tunnel) != c.others || (got.Applied == 9) != c.others {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestDamagedJournalIsEmptyAndReportsTheDamage(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "zeros": "\x00\x00\x00\x00", "cut off": `{"boot":{"pid":7,"ms":1000},"claims":[{"vll":"v"`,
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "journal.json"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			journal, err := OpenJournal(folder)
			if err != nil {
				t.Fatal(err)
			}
			if journal.Lost() == nil {
				t.Error("no error")
			}
			if got := journal.Of(Boot{PID: 7, MS: 1000}); len(got.Claims) != 0 {
				t.Errorf("got %+v", got)
			}
			if err := journal.Claim(Journal{Boot: boot, Applied: 1}); err != nil {
				t.Fatal(err)
			}
			if again, err := OpenJournal(folder); err != nil || again.Lost() != nil || again.Of(boot).Applied != 1 {
				t.Errorf("it is still damaged: %v", err)
			}
		})
	}
}

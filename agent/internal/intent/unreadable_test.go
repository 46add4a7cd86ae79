package intent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnUnreadableIntentIsSetAsideUntilThePortalSendsOne(t *testing.T) {
	whole := decodedIn(t, "vxlan4-dot1q.json").Document()
	for name, c := range map[string]struct {
		content []byte
		least   int64 // oldest generation that is accepted
	}{
		"empty":                          {nil, 1},
		"torn":                           {whole[:len(whole)/2], 1},
		"of a newer agent":               {bytes.Replace(whole, []byte(`"frame":`), []byte(`"invented_later":1,"frame":`), 1), 42},
		"another schema, in other words": {[]byte(`{"schema": 2, "generation": 42, "lines": []}`), 42},
		"zeros":                          {make([]byte, 4096), 1},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "intent.json"), c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			for start := range 3 { // the file stays set aside after restarts
				store := opened(t, folder)
				if stored, _ := store.Current(); stored != nil {
					t.Fatalf("start %d: stored %+v", start, stored)
				}
				kept, err := os.ReadFile(filepath.Join(folder, "intent.json.set-aside"))
				if err != nil || !bytes.Equal(kept, c.content) {
					t.Fatalf("start %d: kept %q, %v", start, kept, err)
				}
				older := decodedIn(t, "vxlan4-dot1q.json")
				older.Generation = c.least - 1
				var old *OldGenerationError
				if err := store.Accept(older); c.least > 1 && (!errors.As(err, &old) || old.Stored != c.least) {
					t.Fatalf("start %d: one that is older than the stored one: %v", start, err)
				}
				if c.least == 1 {
					break
				}
			}
			sent := decodedIn(t, "vxlan4-dot1q.json")
			if err := opened(t, folder).Accept(sent); err != nil {
				t.Fatal(err)
			}
			if stored, _ := opened(t, folder).Current(); stored == nil || stored.Generation != 42 {
				t.Errorf("stored %+v", stored)
			}
		})
	}
}

func TestAFileThatIsSetAsideHasAReason(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "intent.json"), []byte(`{"schema":1`), 0o600); err != nil {
		t.Fatal(err)
	}
	aside := opened(t, folder).SetAside()
	if aside == nil || aside.Path != filepath.Join(folder, "intent.json.set-aside") || !strings.Contains(aside.Why, "JSON") {
		t.Errorf("%+v", aside)
	}
	if again := opened(t, folder).SetAside(); again != nil {
		t.Errorf("set aside again: %+v", again)
	}
}

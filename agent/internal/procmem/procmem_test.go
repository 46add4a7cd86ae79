package procmem

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// mostEnds is the number of ends that fit a VPP with a stats segment of 256 MB and one thread, according to
// docs/routers/agent.md.
const mostEnds = 15_000

// megabytes returns a setting of a file in deploy/, in MiB.
func megabytes(t *testing.T, path, setting string) int64 {
	t.Helper()
	text, err := os.ReadFile("../../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\s*` + setting + `[=:] ?(\d+)[Mm]$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no %s in MiB", path, setting)
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 20
}

// TestTheLimitsOfUnitAndContainerHaveRoomForAFullRouter: above MemoryHigh the kernel throttles the agent,
// above the other limits it kills it.
func TestTheLimitsOfUnitAndContainerHaveRoomForAFullRouter(t *testing.T) {
	const program, tooLate = 16 << 20, 32 << 20 // the program's own pages; allocations while the collector runs
	needed := limit(mostEnds) + program + tooLate
	for _, c := range []struct{ path, setting string }{
		{"deploy/systemd/longline-agent.service", "MemoryHigh"},
		{"deploy/systemd/longline-agent.service", "MemoryMax"},
		{"docker-compose.yml", "mem_limit"},
	} {
		if allowed := megabytes(t, c.path, c.setting); allowed < needed {
			t.Errorf("%s: %s is %d MiB, and %d ends may take %d MiB", c.path, c.setting, allowed>>20, mostEnds, needed>>20)
		}
	}
}

func TestAThousandEndsStayBelowTheDocumentedLimit(t *testing.T) {
	if own := limit(1000); own > 48<<20 {
		t.Errorf("%d bytes", own)
	}
}

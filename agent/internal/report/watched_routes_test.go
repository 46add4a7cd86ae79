package report

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestOnlyPlainUnicastAddressesAreWatched(t *testing.T) {
	got, strange, err := parseWatchedRoutes([]string{
		"fd00:255::2", "10.255.0.2", "10.255.0.2", "fe80::1%eth0", "::ffff:10.0.0.1", "224.0.0.1", "::", "0.0.0.0", "10.0.0.0/8", "portal",
	})
	want := []netip.Addr{netip.MustParseAddr("10.255.0.2"), netip.MustParseAddr("fd00:255::2")}
	if err != nil || !slices.Equal(got, want) || strange != 7 {
		t.Errorf("got %v, %d strange, %v", got, strange, err)
	}
}

func TestARequestForTooManyRoutesIsIgnored(t *testing.T) {
	r := &Reporter{log: quiet, again: make(chan struct{}, 1)}
	r.setWatchedRoutes(0, []string{"10.255.0.2"})
	r.setWatchedRoutes(0, slices.Repeat([]string{"10.255.0.3"}, maxWatched+1))
	if got := r.watchedRoutes(); len(got) != 1 || got[0].Address.String() != "10.255.0.2" {
		t.Errorf("watches %v", got)
	}
}

// TestWatchedRoutesChangeTogetherWithTheirTable: a change is also reported immediately.
func TestWatchedRoutesChangeTogetherWithTheirTable(t *testing.T) {
	r := &Reporter{log: quiet, again: make(chan struct{}, 1)}
	for n, c := range []struct {
		table    uint32
		texts    []string
		want     string
		reported int
	}{
		{10, []string{"10.255.0.2"}, "[{10 10.255.0.2}]", 1}, {10, nil, "[{10 10.255.0.2}]", 0}, {20, nil, "[{20 10.255.0.2}]", 1},
		{0, slices.Repeat([]string{"10.255.0.3"}, maxWatched+1), "[{0 10.255.0.2}]", 1}, {0, []string{}, "[]", 1},
	} {
		r.setWatchedRoutes(c.table, c.texts)
		if got, reported := fmt.Sprint(r.watchedRoutes()), len(r.again); got != c.want || reported != c.reported {
			t.Errorf("answer %d: %s, reported %d times", n, got, reported)
		}
		for range len(r.again) {
			<-r.again
		}
	}
}

func FuzzTheResponseOfAHostilePortal(f *testing.F) {
	for _, seed := range []string{
		`{"watch_routes": ["10.255.0.2", "fd00:255::2"]}`, `{"watch_routes": null}`, `{"watch_routes": ["fe80::1%` + strings.Repeat("z", 300) + `"]}`,
		`{"watch_routes": 7}`, `[]`, `{`, `null`, `{"watch_routes": [` + strings.Repeat(`[`, 1000) + `]}`, "\xff\xfe", `{"watch_routes": ["\u0000"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var answer observedAnswer
		if json.Unmarshal(data, &answer) != nil {
			return
		}
		addresses, strange, err := parseWatchedRoutes(answer.WatchRoutes)
		if err != nil {
			return
		}
		if len(addresses)+strange > len(answer.WatchRoutes) || !slices.IsSortedFunc(addresses, netip.Addr.Compare) {
			t.Errorf("%d of %d, %d strange", len(addresses), len(answer.WatchRoutes), strange)
		}
		for _, a := range addresses {
			if !a.IsValid() || a.Zone() != "" || a.Is4In6() {
				t.Errorf("watches %v", a)
			}
		}
	})
}

package realvpp

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// StartOrSkip starts a private VPP that ends with the test. If no VPP is installed, it skips the test and
// names the folders that it searched. If VPP_REQUIRED is set, it lets the test fail instead. So on a machine
// that must have a VPP, no test is skipped unnoticed.
func StartOrSkip(t testing.TB, options Options) *VPP {
	t.Helper()
	install, err := Find()
	if err != nil {
		if os.Getenv("VPP_REQUIRED") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED, NOT RUN ON A REAL VPP: %v (set VPP_PREFIX)", err)
	}
	v, err := Start(t.Context(), install, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Stop)
	return v
}

// StartThatOrSkip starts the first VPP of this machine for which meant returns true. If there is none, it
// skips the test. The text in what describes the required VPP.
func StartThatOrSkip(t testing.TB, options Options, what string, meant func(*VPP) bool) *VPP {
	t.Helper()
	for _, install := range Installed() {
		v, err := Start(t.Context(), install, options)
		if err != nil {
			t.Fatal(err)
		}
		if meant(v) {
			t.Cleanup(v.Stop)
			return v
		}
		v.Stop()
	}
	t.Skipf("SKIPPED, NO SUCH VPP ON THIS MACHINE: %s", what)
	return nil
}

// StartPairOrSkip starts two VPPs, n = 1 and 2, joined by a memif link of 9,000 bytes. Each VPP has a loop0
// with 10.255.0.n and fd00:255::n, and a route to the addresses of the other VPP. options.Plugins must
// contain memif. The link comes up automatically after a short time.
func StartPairOrSkip(t testing.TB, options Options) [2]*VPP {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "memif.sock")
	pair := [2]*VPP{}
	for at := range pair {
		v := StartOrSkip(t, options)
		pair[at] = v
		near, far := at+1, 2-at
		for _, line := range []string{
			"create memif socket id 1 filename " + socket,
			"create interface memif id 0 socket-id 1 " + [2]string{"master", "slave"}[at],
			"set interface state memif1/0 up",
			fmt.Sprintf("set interface ip address memif1/0 10.0.0.%d/24", near),
			fmt.Sprintf("set interface ip address memif1/0 fd00::%d/64", near),
			"create loopback interface",
			"set interface state loop0 up",
			fmt.Sprintf("set interface ip address loop0 10.255.0.%d/32", near),
			fmt.Sprintf("set interface ip address loop0 fd00:255::%d/128", near),
			fmt.Sprintf("ip route add 10.255.0.%d/32 via 10.0.0.%d", far, far),
			fmt.Sprintf("ip route add fd00:255::%d/128 via fd00::%d", far, far),
		} {
			if _, err := v.CLI(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	return pair
}

package realvpp

import (
	"os"
	"testing"
)

// StartOrSkip starts a private VPP that ends with the test. Where no VPP is installed the
// test is skipped, and says where it was looked for; with VPP_REQUIRED set it fails instead,
// so that a machine meant to have a VPP cannot pass by skipping.
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

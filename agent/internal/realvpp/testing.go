package realvpp

import "testing"

// StartOrSkip starts a private VPP that ends with the test. Where no VPP is installed the
// test is skipped, and says where it was looked for.
func StartOrSkip(t testing.TB, options Options) *VPP {
	t.Helper()
	install, err := Find()
	if err != nil {
		t.Skipf("SKIPPED, NOT RUN ON A REAL VPP: %v (set VPP_PREFIX)", err)
	}
	v, err := Start(t.Context(), install, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Stop)
	return v
}

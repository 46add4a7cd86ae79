package realvpp

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// shownClock matches the output of `show clock verbose`. Its groups are the seconds since VPP's start by the
// kernel's clock, and the difference between VPP's clock and the kernel's clock.
var shownClock = regexp.MustCompile(`(?s)reftime ([\d.]+) .*?error (-?[\d.]+)`)

// clockRight returns an error with the text of misjudged if VPP's time differs by more than a tenth from the
// kernel's time.
func (v *VPP) clockRight() error {
	shown, err := v.CLI("show clock verbose")
	if err != nil {
		return nil // A stand-in has no own clock and does not know the command.
	}
	found := shownClock.FindStringSubmatch(shown)
	if found == nil {
		return fmt.Errorf("show clock verbose: %s", shown)
	}
	kernel, _ := strconv.ParseFloat(found[1], 64)
	off, _ := strconv.ParseFloat(found[2], 64)
	if math.Abs(off) > kernel/10 {
		return fmt.Errorf("%s: by VPP's clock it started %.3f s ago, by the kernel's %.3f s", misjudged, kernel+off, kernel)
	}
	return nil
}

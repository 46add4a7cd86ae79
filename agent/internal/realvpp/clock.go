package realvpp

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// shownClock is what `show clock verbose` prints of the seconds since VPP's start: the kernel's, and how far VPP's are from them.
var shownClock = regexp.MustCompile(`(?s)reftime ([\d.]+) .*?error (-?[\d.]+)`)

// clockRight says that VPP misjudged where its time differs by a tenth from the kernel's.
func (v *VPP) clockRight() error {
	shown, err := v.CLI("show clock verbose")
	if err != nil {
		return nil // A stand-in has no clock of its own, and does not know the command.
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

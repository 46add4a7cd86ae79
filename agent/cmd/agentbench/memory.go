package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// memoryOfAProcess runs this program once more, so that neither vppsim nor earlier rounds count.
func memoryOfAProcess(ctx context.Context, used plane, vlls int, stdout, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, "-memory", "-vlls", strconv.Itoa(vlls), "-api-socket", used.api, "-stats-socket", used.stats)
	child.Stdout, child.Stderr = stdout, stderr
	return child.Run()
}

// measureMemory converges, adds one VLL and removes all, and prints the most memory that was resident.
func measureMemory(ctx context.Context, used plane, vlls int, stdout io.Writer) error {
	b := &bench{plane: used, vlls: vlls, samples: make(map[string][]float64)}
	if err := b.round(ctx); err != nil {
		return err
	}
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "bench agent_rss_%d_mb %.1f MB %s\n", vlls, peak, b.version)
	return nil
}

// peakMemory is VmHWM of proc(5), in MB of 10^6 bytes.
func peakMemory() (float64, error) {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			kibibytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 64)
			return kibibytes * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM: %w", lines.Err())
}

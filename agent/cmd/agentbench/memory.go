package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"longline.dev/agent/internal/memory"
)

// memoryOfAProcess measures in a new process of this program, so that the memory of vppsim and of earlier
// rounds is not included.
func memoryOfAProcess(ctx context.Context, used measuredVPP, vlls int, stdout, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, "-memory", "-vlls", strconv.Itoa(vlls), "-api-socket", used.api, "-stats-socket", used.stats)
	child.Stdout, child.Stderr = stdout, stderr
	return child.Run()
}

// measureMemory converges, adds VLLs and removes all VLLs, while a reporter samples and reports as in the
// agent. It prints the maximum resident memory of this process. The stats segment belongs to VPP
// and is mapped into the process. Its memory is a separate figure.
func measureMemory(ctx context.Context, used measuredVPP, vlls int, stdout io.Writer) error {
	b := &bench{measuredVPP: used, vlls: vlls, samples: make(map[string][]float64), reports: true}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan peak)
	go func() { watched <- watch(ctx) }()
	if err := b.round(ctx); err != nil {
		return err
	}
	cancel()
	most := <-watched
	if most.err != nil {
		return most.err
	}
	fmt.Fprintf(stdout, "bench agent_rss_own_%d_mb %.1f MB %s\n", vlls, float64(most.own)/1e6, b.version)
	fmt.Fprintf(stdout, "bench agent_rss_mapped_of_vpp_%d_mb %.1f MB %s\n", vlls, float64(most.shared)/1e6, b.version)
	return nil
}

// peak is the maximum of the resident memory, in bytes: the process's own memory, and memory shared with
// VPP.
type peak struct {
	own, shared int64
	err         error
}

// watch measures the memory every millisecond until ctx ends, and returns the maximum.
func watch(ctx context.Context) (most peak) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for most.err == nil {
		var now memory.Resident
		now, most.err = memory.Of(os.Getpid())
		most.own, most.shared = max(most.own, now.Own), max(most.shared, now.Shared)
		select {
		case <-ctx.Done():
			return most
		case <-ticker.C:
		}
	}
	return most
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/memory"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/report"
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

// portalAway is the time for which the portal accepts no reports. During this time, a full batch of
// samples accumulates.
const portalAway = 15 * time.Second

// portal simulates the portal: it accepts reports, and encodes each report completely, as a real
// connection does.
type portal struct{ back time.Time }

var errAway = errors.New("the portal is away")

func (p portal) Post(_ context.Context, _ string, body, _ any) error {
	if _, err := json.Marshal(body); err != nil {
		return err
	}
	if time.Now().Before(p.back) {
		return errAway
	}
	return nil
}

// reported has the parts of the agent that the reporter reads.
type reported struct {
	*converge.Engine
	*converge.PathWatcher
	*converge.Tracer
}

// startReports starts to sample and report, ten times as often as the agent does. The caller must call
// stop.
func (b *bench) startReports(ctx context.Context, engine *converge.Engine, folder string) (stop func()) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	unwatched := converge.NewPathWatcher(pathwatch.NoFile(), nil, log, time.Now, true)
	reporter := report.New(report.Options{
		Engine: reported{engine, unwatched, converge.NewTracer(engine)}, Client: portal{time.Now().Add(portalAway)}, Folder: folder,
		StoreLimit: 512 << 20, StatsSocket: b.stats, Interval: time.Second, Router: router, Log: log, Now: time.Now,
	})
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { reporter.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/report"
)

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

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/metrics"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/procmem"
	"longline.dev/agent/internal/renewal"
	"longline.dev/agent/internal/report"
	"longline.dev/agent/internal/server"
	"longline.dev/agent/internal/snmp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// vppTimeout is the time without a reply after which the agent considers VPP dead. A full dump on a busy
// router takes much less time.
const vppTimeout = 5 * time.Second

// finishWithin is the maximum time for which a reconciliation may continue after a signal to stop.
// After the unit's TimeoutStopSec, systemd kills the agent. TimeoutStopSec must therefore be longer
// than finishWithin plus the time to close everything (server.stopTimeout, vpp.goodbye).
const finishWithin = 75 * time.Second

// listeners are the sockets on which the agent accepts requests. metrics is nil if no address is
// configured for it.
type listeners struct{ portal, control, metrics net.Listener }

func (l listeners) close() {
	for _, each := range []net.Listener{l.portal, l.control, l.metrics} {
		if each != nil {
			_ = each.Close()
		}
	}
}

func listen(ctx context.Context, c *config.Config) (l listeners, err error) {
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.control, err = server.ListenControl(ctx, c.ControlSocket); err != nil {
		return l, err
	}
	if l.portal, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen); err != nil {
		return l, fmt.Errorf("listen: %w", err)
	}
	if c.Metrics.Listen != "" {
		if l.metrics, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.Metrics.Listen); err != nil {
			return l, fmt.Errorf("metrics.listen: %w", err)
		}
	}
	return l, nil
}

// served has the parts of the agent that the server calls. It triggers a report after each intent that the engine
// accepts, even if the intent changes nothing in VPP.
type served struct {
	converge.Parts
	*converge.Calibrator
	reporter *report.Reporter
}

func (t served) Put(ctx context.Context, in *intent.Intent, acknowledged string) (*converge.Outcome, error) {
	defer t.reporter.ReportNow()
	procmem.Bound(in)
	return t.Engine.Put(ctx, in, acknowledged)
}

// RebuildVLAN lets the reporter record a rebuild on disk and start it.
func (t served) RebuildVLAN(end intent.Key) error { return t.reporter.RebuildVLAN(end) }

// stateFiles are the files in the state folder that are replaced by renaming a temporary file. The
// files of spools are not listed, because spools remove their temporary files themselves.
var stateFiles = []string{"intent.json", "journal.json", "tagged.log", "freeze.json", "paths.json", "rebuilds.json"}

// removeTemporaries removes temporary files that agents and commands left behind because they were killed
// while they wrote.
func removeTemporaries(c *config.Config, log *slog.Logger) {
	files := identity.Written(c.TLS)
	for _, name := range stateFiles {
		files = append(files, filepath.Join(c.StateDir, name))
	}
	removed, err := durable.RemoveTemporaries(files...)
	for _, path := range removed {
		log.Info("removed a temporary file of a process that was killed", "file", path)
	}
	if err != nil {
		log.Warn("temporary files of a process that was killed may be left", "error", err)
	}
}

// setAside logs the files that the agent could not read and has set aside. The returned function
// lists the set-aside files that still exist.
func setAside(folder string, store *intent.Store, reporter *report.Reporter, log *slog.Logger) func() []durable.SetAsideFile {
	now, folders := reporter.SetAside()
	if aside := store.SetAside(); aside != nil {
		now = append(now, *aside)
	}
	all := durable.AllSetAside(now, append(folders, folder)...)
	for _, aside := range all {
		log.Error("a file could not be used and was set aside; inspect and remove it", "file", aside.Path, "why", aside.Why)
	}
	return func() []durable.SetAsideFile { return durable.StillSetAside(all) }
}

// counters returns a function that reads the stats segment behind this socket. Concurrent calls run one after
// another.
func counters(socket string) func(bootMS int64) (statseg.Reading, error) {
	var mu sync.Mutex
	segment := statseg.NewReopeningSegment(socket)
	return func(bootMS int64) (statseg.Reading, error) {
		mu.Lock()
		defer mu.Unlock()
		return segment.Read(bootMS)
	}
}

// serve runs the agent until ctx ends or a listener fails. It then accepts no new work, finishes the
// running work in VPP, and closes everything.
func serve(ctx context.Context, c *config.Config, log *slog.Logger) error {
	files, err := identity.Load(c.TLS, c.Router)
	if err != nil {
		return err
	}
	files.Log = log
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return err
	}
	lock, err := durable.Lock(c.StateDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	removeTemporaries(c, log)
	store := intent.OpenStore(c.StateDir, c.Router)
	if err := store.Reserve(); err != nil {
		log.Error("the disk has no reserved space for intent and journal; unsent reports will be dropped for them", "error", err)
	}
	stored, _ := store.Current()
	procmem.Bound(stored)
	journal, err := ownership.OpenJournal(c.StateDir)
	if err != nil {
		return err
	}
	if lost := journal.Lost(); lost != nil {
		log.Error("the journal cannot be used; untagged objects of the last run may cause conflicts", "error", lost)
	}
	l, err := listen(ctx, c)
	if err != nil {
		return err
	}
	defer l.close()
	heard, err := pathwatch.OpenUpPaths(c.StateDir)
	if err != nil {
		return err
	}
	frozen, err := freeze.Open(c.StateDir, time.Now)
	if err != nil {
		return err
	}
	stats := statseg.NewReopeningSegment(c.VPP.StatsSocket)
	paths := converge.NewPathWatcher(heard, journal, log, time.Now, c.VPP.PathWatch == "off")
	var aside func() []durable.SetAsideFile // set below, because the reporter needs the engine
	engine := converge.New(store, journal, log, time.Now, converge.Options{
		Repair: converge.Repair(c.Drift), FullObservation: c.VPP.FullObservation, CLISocket: c.VPP.CLISocket, Frozen: frozen, Paths: paths,
		FreeInterfaces: stats.FreeInterfaces, Epoch: stats.Epoch, TunnelCounters: stats.TunnelCounters,
		Adoption: c.Adoption == "allowed", PortMTUs: c.VPP.Vppcfg == "present",
		SetAside: func() []durable.SetAsideFile { return aside() },
	})
	parts := engine.Parts()
	options := report.Options{
		IgnoreDefaultRoutes: c.VPP.DefaultRoutes == "ignored",
		Engine:              parts, StatsSocket: c.VPP.StatsSocket, Interval: c.Report.Interval,
		Router: c.Router, Version: version, Log: log, Now: time.Now, Folder: c.StateDir, StoreLimit: c.Report.StoreLimit,
		First: store.Reserve, Labels: c.SNMP.AgentX != "",
	}
	var renewer *renewal.Renewer
	if c.Report.URL != "" {
		client := report.NewClient(c.Report.URL, files.Client())
		options.Client = client
		renewer = &renewal.Renewer{Router: c.Router, Files: c.TLS, Portal: client, Log: log, Now: time.Now}
	}
	reporter := report.New(options)
	aside = setAside(c.StateDir, store, reporter, log)
	dialer := vpp.Dialer{Socket: c.VPP.APISocket, Name: vpp.AgentName(c.Router), Timeout: vppTimeout, BootMS: func(ctx context.Context) (int64, error) {
		return statseg.BootTime(ctx, c.VPP.StatsSocket)
	}, Interfaces: stats.Interfaces}
	collector := metrics.New(engine, reporter, version)
	collector.Segment = func() (statseg.Memory, error) { return statseg.Fullness(c.VPP.StatsSocket) }
	httpServer := server.New(c.Router, version, served{parts, converge.NewCalibrator(engine, reporter.Maintenance), reporter}, collector, log)
	httpServer.Valid = files.Valid
	httpServer.Counters = counters(c.VPP.StatsSocket)
	if options.Client != nil {
		httpServer.QueryPortal = options.Client.Post
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connected, disconnect := context.WithCancel(context.WithoutCancel(ctx)) // the connection to VPP must remain until the running work has ended
	defer disconnect()
	finished := make(chan struct{})
	httpServer.Finished = finished
	var workers sync.WaitGroup
	failures := make(chan error, 3) // one for each listener
	work := func(do func() error) {
		workers.Go(func() {
			defer cancel() // the first goroutine that ends stops the others
			if err := do(); err != nil {
				failures <- err
			}
		})
	}
	work(func() error {
		defer disconnect()
		defer close(finished)
		<-ctx.Done()
		finishWork(engine, log)
		return nil
	})
	work(func() error {
		dialer.KeepConnected(connected, vpp.Keeper{Log: log, Refused: engine.Refused, Noticed: collector.Noticed, Use: func(ctx context.Context, session *vpp.Session) {
			collector.Connected()
			engine.Serve(ctx, session)
		}})
		return nil
	})
	work(func() error { reporter.Run(ctx); return nil })
	if c.SNMP.AgentX != "" {
		interfaces := &snmp.Interfaces{Engine: engine, Counters: counters(c.VPP.StatsSocket), Now: time.Now}
		subagent := snmp.Subagent{Socket: c.SNMP.AgentX, Name: "longline-agent " + version, Interfaces: interfaces, Log: log}
		work(func() error { subagent.Run(ctx); return nil })
	}
	if renewer != nil {
		work(func() error { renewer.Run(ctx); return nil })
	}
	work(func() error { return httpServer.Serve(ctx, l.portal, files.Server()) })
	work(func() error { return httpServer.ServeControl(ctx, l.control) })
	if l.metrics != nil {
		work(func() error { return httpServer.ServeMetrics(ctx, l.metrics) })
	}
	log.Info("listening", "address", l.portal.Addr().String(), "control", c.ControlSocket, "version", version)
	workers.Wait()
	close(failures)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// finishWork stops the engine from accepting new work, and waits until the running work has ended.
func finishWork(engine *converge.Engine, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), finishWithin)
	defer cancel()
	started := time.Now()
	if err := engine.FinishWork(ctx); err != nil {
		log.Error("the agent ends before its work is complete; the next start continues it", "error", err)
		return
	}
	log.Info("stopping: all work is finished", "duration", time.Since(started))
}

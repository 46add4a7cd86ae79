// Command longline-agent brings the VPP of this machine to what the portal intends, and reports what it sees.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/identity"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/metrics"
	"longline.dev/agent/internal/own"
	"longline.dev/agent/internal/report"
	"longline.dev/agent/internal/server"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

const (
	version = "0.1.0"
	// vppTimeout is the longest silence of VPP that is not taken for its death. A full dump on a busy router
	// takes far less.
	vppTimeout = 5 * time.Second
	// gcPercent spares the collector: a pass over a thousand VLLs allocates a few MB that are garbage at its
	// end, and with Go's default of 100 the collector runs several times within it.
	gcPercent = 400
)

func main() {
	debug.SetGCPercent(gcPercent)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "longline-agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("longline-agent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", "", "YAML configuration `FILE`")
	showVersion := flags.Bool("version", false, "print the version and the supported VPP releases, and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *showVersion {
		_, err := fmt.Fprintf(stdout, "longline-agent %s (VPP 23.10 to 26.06)\n", version)
		return err
	}
	if *path == "" || flags.NArg() > 0 {
		flags.Usage()
		return errors.New("-config FILE is required, and nothing else")
	}
	c, err := config.Load(*path)
	if err != nil {
		return err
	}
	return serve(ctx, c, slog.New(slog.NewJSONHandler(stderr, nil)).With("router", c.Router))
}

// serve runs until ctx ends or the listener fails.
func serve(ctx context.Context, c *config.Config, log *slog.Logger) error {
	files, err := identity.Load(c.TLS, c.Router)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return err
	}
	store, err := intent.OpenStore(c.StateDir, c.Router)
	if err != nil {
		return err
	}
	journal, err := own.OpenJournal(c.StateDir)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	engine := converge.New(store, journal, log, time.Now)
	options := report.Options{
		Engine: engine, StatsSocket: c.VPP.StatsSocket, Interval: time.Duration(c.Report.Interval),
		Router: c.Router, Version: version, Log: log, Now: time.Now,
	}
	if c.Report.URL != "" {
		options.Client = report.NewClient(c.Report.URL, files.Client())
	}
	reporter := report.New(options)
	dialer := vpp.Dialer{Socket: c.VPP.APISocket, Timeout: vppTimeout, BootMS: func(ctx context.Context) (int64, error) {
		return statseg.BootTime(ctx, c.VPP.StatsSocket)
	}}

	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	workers.Go(func() { dialer.Keep(ctx, log, engine.Serve) })
	workers.Go(func() { reporter.Run(ctx) })
	log.Info("listening", "address", listener.Addr().String(), "version", version)
	door := server.New(c.Router, version, engine, metrics.Registry(engine, reporter, version), log)
	return door.Serve(ctx, listener, files.Server())
}

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

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memclnt"

	"longline.dev/agent/internal/calibration"
	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/procmem"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/report"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// measureMainThread prints how long VPP's main thread is blocked while the agent reads a VPP with this
// number of VLL ends. BFD, LACP and ARP run on that thread. A second client sends one control_ping
// message after another. For each read, the slowest reply counts. The figure is the median of these
// times over several reads.
//
// It prints the same figure for four more cases:
//   - an observation without changes;
//   - the only dump that VPP cannot send in portions;
//   - one dump of all interfaces, which the agent does not request on a router of this size;
//   - pings without any read.
func measureMainThread(ctx context.Context, used measuredVPP, vlls, rounds int, stdout io.Writer) error {
	folder, err := os.MkdirTemp("", "agentbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	engine, err := newEngine(folder, used.stats)
	if err != nil {
		return err
	}
	b := &bench{measuredVPP: used, vlls: vlls, samples: make(map[string][]float64)}
	session, err := b.connect(ctx, engine)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := put(ctx, engine, intent.NewDecoder(router), document(1, b.ends(vlls), nil)); err != nil {
		return err
	}
	in := engine.Status().Intent
	other, err := vpp.Dialer{Socket: used.api, Timeout: 10 * time.Second}.Dial(ctx)
	if err != nil {
		return err
	}
	defer other.Close()
	dump := func(request api.Message) func() error {
		return func() error { return session.Dump(ctx, []api.Message{request}, func(api.Message) {}) }
	}
	for _, figure := range []struct {
		name string
		read func() error
	}{
		// The first figure is measured without after-effects of the reads.
		{"main_thread_block_idle_ms", func() error { time.Sleep(100 * time.Millisecond); return nil }},
		{"main_thread_block_ms", func() error { _, _, err := engine.Plan(ctx, in); return err }},
		{"main_thread_block_quick_ms", func() error { engine.CheckDrift(ctx); return nil }},
		{"main_thread_block_cross_connects_ms", dump(&l2.L2XconnectDump{})},
		{"main_thread_block_whole_dump_ms", dump(&interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(^uint32(0))})},
	} {
		ms, err := slowestReplies(ctx, other, rounds, figure.read)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "bench %s %.1f ms %s, %d VLL ends\n", figure.name, ms, b.version, vlls)
	}
	return nil
}

// slowestReplies sends pings during each read. It returns the time of the slowest reply in a read (ms),
// as the median over the rounds.
func slowestReplies(ctx context.Context, session *vpp.Session, rounds int, read func() error) (float64, error) {
	var slowest []float64
	for range rounds {
		ended := make(chan error, 1)
		go func() { ended <- read() }()
		most, over := time.Duration(0), false
		for !over {
			sent := time.Now()
			if _, err := session.Call(ctx, &memclnt.ControlPing{}); err != nil {
				return 0, err
			}
			most = max(most, time.Since(sent))
			select {
			case err := <-ended:
				if err != nil {
					return 0, err
				}
				over = true
			default:
			}
		}
		slowest = append(slowest, float64(most.Microseconds())/1000)
	}
	return median(slowest), nil
}

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
		var now procmem.Resident
		now, most.err = procmem.Of(os.Getpid())
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

// startReports starts to sample and report, ten times as often as the agent does. The caller must call
// stop.
func (b *bench) startReports(ctx context.Context, engine *converge.Engine, folder string) (stop func()) {
	log := slog.New(slog.DiscardHandler)
	reporter := report.New(report.Options{
		Engine: engine.Parts(), Client: portal{time.Now().Add(portalAway)}, Folder: folder,
		StoreLimit: 512 << 20, StatsSocket: b.stats, Interval: time.Second, Router: router, Log: log, Now: time.Now,
	})
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { reporter.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// measureEncapsulations prints the cost of each transport. It starts a private VPP. This must be a
// real VPP, because the stand-in does not forward frames as VPP does.
func measureEncapsulations(ctx context.Context, stdout io.Writer) error {
	install, err := realvpp.Find()
	if err != nil {
		return err
	}
	v, err := realvpp.Start(ctx, install, realvpp.Options{Plugins: []string{"vxlan", "geneve", "gre"}})
	if err != nil {
		return err
	}
	defer v.Stop()
	session, err := vpp.Dialer{Socket: v.APISocket(), Timeout: 10 * time.Second, BootMS: func(ctx context.Context) (int64, error) {
		return statseg.BootTime(ctx, v.StatsSocket())
	}}.Dial(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	result, err := calibration.Measure(ctx, session, calibration.Usual)
	if err != nil {
		return err
	}
	for _, f := range result.Figures {
		fmt.Fprintf(stdout, "bench encap_cycles_%s %.1f clocks %.1f to %.1f in %d rounds of %d frames, %s\n",
			f.Transport, f.Clocks, f.Least, f.Most, result.Rounds, result.Frames, session.Info().Version)
	}
	return nil
}

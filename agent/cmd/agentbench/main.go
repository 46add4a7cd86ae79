// Command agentbench measures how long the agent's engine needs to converge a VPP. It prints one line per
// figure:
//
//	bench agent_converge_1000_ms 123.4 ms <VPP's version>
//
// The engine runs in the process of agentbench, with a temporary state folder. It uses the VPP
// behind -api-socket. Without this option, agentbench starts a private VPP: a real VPP if one is
// installed, otherwise vppsim. The times are also measured with ten times as many VLL ends, because
// they must grow linearly.
//
// The resident memory is measured in a separate process, which samples and reports as the agent does. It
// is also measured with as many VLL ends as fit into a stats segment of 256 MB.
//
// With -main-thread, agentbench measures how long VPP's main thread is blocked while the agent reads.
//
// With -encapsulations, agentbench measures the cost of each transport in a real VPP, as longline-agent
// calibrate does on a router.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/procmem"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// fullRouter is the number of VLL ends on one router that docs/routers/agent.md promises.
const fullRouter = 15_000

func main() {
	debug.SetGCPercent(procmem.GCPercent) // as in the agent
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "agentbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("agentbench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	api := flags.String("api-socket", "", "binary API `SOCKET` of a VPP to use; its -stats-socket is then needed too")
	stats := flags.String("stats-socket", "", "stats segment `SOCKET` of that VPP")
	vlls := flags.Int("vlls", 1000, "number of VLL ends")
	rounds := flags.Int("rounds", 5, "rounds; the median counts")
	full := flags.Int("full-router", fullRouter, "number of VLL ends of a full router, whose memory is measured")
	encapsulations := flags.Bool("encapsulations", false, "measure what encapsulations cost in a private real VPP alone, and nothing else")
	mainThread := flags.Bool("main-thread", false, "measure for how long reading blocks VPP's main thread alone, and nothing else")
	onlyMemory := flags.Bool("memory", false, "measure this process's memory alone, and nothing else")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || (*api == "") != (*stats == "") || *vlls < 1 || *rounds < 1 || *full < 1 {
		flags.Usage()
		return errors.New("both sockets or neither, and positive numbers")
	}
	if *encapsulations {
		return measureEncapsulations(ctx, stdout)
	}
	used := measuredVPP{api: *api, stats: *stats, stop: func() {}}
	if *api == "" {
		var err error
		if used, err = startVPP(ctx); err != nil {
			return err
		}
	}
	defer used.stop()
	if *mainThread {
		return measureMainThread(ctx, used, *vlls, *rounds, stdout)
	}
	if *onlyMemory {
		return measureMemory(ctx, used, *vlls, stdout)
	}
	if err := timed(ctx, used, *vlls, *rounds, figures, stdout); err != nil {
		return err
	}
	if err := timed(ctx, used, 10**vlls, 1, []string{converged, resynced, added, addedNext}, stdout); err != nil {
		return err
	}
	for _, n := range []int{*vlls, *full} {
		if err := memoryOfAProcess(ctx, used, n, stdout, stderr); err != nil {
			return err
		}
	}
	return nil
}

// timed runs the rounds and prints the figures with these names.
func timed(ctx context.Context, used measuredVPP, vlls, rounds int, names []string, stdout io.Writer) error {
	b := &bench{measuredVPP: used, vlls: vlls, samples: make(map[string][]float64)}
	for range rounds {
		if err := b.round(ctx); err != nil {
			return err
		}
	}
	for _, name := range names {
		if len(b.samples[name]) == 0 {
			continue // agentbench does not restart the VPP of -api-socket
		}
		fmt.Fprintf(stdout, "bench agent_%s_ms %.1f ms %s\n", fmt.Sprintf(name, vlls), median(b.samples[name]), b.version)
	}
	return nil
}

const (
	router    = "bench"
	converged = "converge_%d"
	resynced  = "resync_%d"
	added     = "add_1_of_%d"
	addedNext = "add_next_of_%d"
	reapplied = "reapply_%d"
	removed   = "remove_%d"
)

var figures = []string{converged, resynced, added, addedNext, reapplied, removed}

type bench struct {
	measuredVPP
	vlls    int
	samples map[string][]float64 // milliseconds
	version string
	reports bool // also sample and report during the measurement
}

func median(samples []float64) float64 {
	return slices.Sorted(slices.Values(samples))[len(samples)/2]
}

// additions is the number of single VLLs that a round adds.
const additions = 10

// round measures each step. The time includes decoding the document and observing VPP. The steps are:
//   - converge on an empty VPP;
//   - converge again without a change;
//   - add single VLLs;
//   - converge after a restart of VPP;
//   - remove all VLLs.
//
// Before every second addition, beginning with the first, the engine observes VPP, as it does
// within a second of each change. The other additions follow directly after the preceding addition.
func (b *bench) round(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "agentbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	engine, err := newEngine(folder, b.stats)
	if err != nil {
		return err
	}
	if b.reports {
		stop := b.startReports(ctx, engine, folder)
		defer stop()
	}
	session, err := b.connect(ctx, engine)
	if err != nil {
		return err
	}
	defer func() { session.Close() }()
	all, more := b.ends(b.vlls), b.ends(b.vlls+additions)
	type step struct {
		name             string
		generation       int64
		present, removed []intent.End
		writes           bool
	}
	steps := []step{{converged, 1, all, nil, true}, {resynced, 1, all, nil, false}}
	for n := range additions {
		name := added
		if n%2 == 1 {
			name = addedNext
		}
		steps = append(steps, step{name, int64(2 + n), more[:b.vlls+1+n], nil, true})
	}
	steps = append(steps, step{removed, 2 + additions, nil, more, true})
	decoder := intent.NewDecoder(router)
	for n, step := range steps {
		document := document(step.generation, step.present, step.removed)
		if step.name == added {
			engine.CheckDrift(ctx)
		}
		before := engine.Status().Statistics.Writes
		started := time.Now()
		if err := put(ctx, engine, decoder, document); err != nil {
			return fmt.Errorf("%s: %w", fmt.Sprintf(step.name, b.vlls), err)
		}
		b.add(step.name, started)
		if wrote := engine.Status().Statistics.Writes != before; wrote != step.writes {
			return fmt.Errorf("%s: wrote to VPP: %v", fmt.Sprintf(step.name, b.vlls), wrote)
		}
		if last := n+2 == len(steps); last && b.restart != nil {
			if session, err = b.reapply(ctx, engine, session); err != nil {
				return err
			}
		}
	}
	return nil
}

// newEngine returns an engine that works as in the agent, but logs nothing. statsSocket is VPP's stats socket.
func newEngine(folder, statsSocket string) (*converge.Engine, error) {
	journal, err := ownership.OpenJournal(folder)
	stats := statseg.NewReopeningSegment(statsSocket)
	return converge.New(intent.OpenStore(folder, router), journal, slog.New(slog.DiscardHandler), time.Now, converge.Options{
		FullObservation: time.Hour, FreeInterfaces: stats.FreeInterfaces, Epoch: stats.Epoch,
	}), err
}

// reapply restarts VPP and converges again. It measures from the moment when the restarted VPP accepts a
// connection.
func (b *bench) reapply(ctx context.Context, engine *converge.Engine, session *vpp.Session) (*vpp.Session, error) {
	session.Close()
	if err := b.restart(ctx); err != nil {
		return session, err
	}
	session, err := b.connect(ctx, engine)
	if err != nil {
		return session, err
	}
	started := time.Now()
	outcome := engine.Converge(ctx)
	b.add(reapplied, started)
	return session, good(outcome)
}

func (b *bench) connect(ctx context.Context, engine *converge.Engine) (*vpp.Session, error) {
	dialer := vpp.Dialer{Socket: b.api, Timeout: 10 * time.Second, BootMS: func(ctx context.Context) (int64, error) {
		return statseg.BootTime(ctx, b.stats)
	}, Interfaces: statseg.NewReopeningSegment(b.stats).Interfaces}
	session, err := dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	b.version = session.Info().Version
	if err := prepare(ctx, session, b.vlls+additions); err != nil {
		return nil, err
	}
	engine.Attach(session)
	return session, nil
}

func (b *bench) add(name string, started time.Time) {
	b.samples[name] = append(b.samples[name], float64(time.Since(started).Microseconds())/1000)
}

func (b *bench) ends(n int) []intent.End {
	var ends []intent.End
	for i := range n {
		ends = append(ends, intent.End{
			Key: intent.Key{VLL: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), End: "a"}, Revision: 1, AdminUp: true, Frame: 1514,
			Access: intent.Access{Interface: portName(i / vlansPerPort), Tagging: intent.Dot1q, Outer: uint16(1 + i%vlansPerPort), Exact: true},
			Tunnel: intent.Tunnel{Encapsulation: intent.VXLAN, Local: local, Remote: remote, VNI: uint32(1 + i)},
		})
	}
	return ends
}

func document(generation int64, present, removed []intent.End) []byte {
	in := &intent.Intent{Router: router, Generation: generation, Present: present}
	for _, e := range removed {
		in.Removed = append(in.Removed, intent.Tombstone{Key: e.Key, Revision: e.Revision})
	}
	return in.Document()
}

func put(ctx context.Context, engine *converge.Engine, decoder *intent.Decoder, document []byte) error {
	in, err := decoder.Decode(document)
	if err != nil {
		return err
	}
	procmem.Bound(in)
	outcome, err := engine.Put(ctx, in, "")
	if err != nil {
		return err
	}
	return good(outcome)
}

func good(outcome *converge.Outcome) error {
	for _, e := range outcome.Ends {
		if e.Reason != nil {
			return fmt.Errorf("%s is %s: %+v", e.Key, e.Status, *e.Reason)
		}
	}
	if !outcome.Applied {
		return converge.ErrNoVPP
	}
	return nil
}

type measuredVPP struct {
	api, stats string
	restart    func(context.Context) error // nil if agentbench may not restart it
	stop       func()
}

// startVPP starts a real VPP if one is installed, otherwise vppsim.
func startVPP(ctx context.Context) (measuredVPP, error) {
	if install, err := realvpp.Find(); err == nil {
		v, err := realvpp.Start(ctx, install, realvpp.Options{})
		if err != nil {
			return measuredVPP{}, err
		}
		return measuredVPP{v.APISocket(), v.StatsSocket(), v.Restart, v.Stop}, nil
	}
	sim, err := vppsim.Start(ctx, vppsim.Config{})
	if err != nil {
		return measuredVPP{}, err
	}
	return measuredVPP{sim.APISocket(), sim.StatsSocket(), func(context.Context) error { return sim.Restart() }, sim.Stop}, nil
}

// Loopbacks stand for the customers' ports. One loopback has the local address of the tunnels.
const (
	firstPort    = 200
	localLoop    = 254
	vlansPerPort = 4000
)

var local, remote = netip.MustParseAddr("10.255.254.1"), netip.MustParseAddr("10.255.254.2")

func ports(vlls int) int { return (vlls + vlansPerPort) / vlansPerPort }

func portName(n int) string { return fmt.Sprintf("loop%d", firstPort+n) }

// prepare creates the missing loopbacks.
func prepare(ctx context.Context, session *vpp.Session, vlls int) error {
	instances := []uint32{localLoop}
	for n := range ports(vlls) {
		instances = append(instances, uint32(firstPort+n))
	}
	for _, instance := range instances {
		reply, err := session.Call(ctx, &interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: instance})
		if err != nil {
			return err
		}
		if vpp.Retval(reply) != 0 {
			continue // it exists already
		}
		index := reply.(*interfaces.CreateLoopbackInstanceReply).SwIfIndex
		setup := []api.Message{&interfaces.SwInterfaceSetFlags{SwIfIndex: index, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP}}
		if instance == localLoop {
			setup = append(setup, &interfaces.SwInterfaceAddDelAddress{
				SwIfIndex: index, IsAdd: true, Prefix: ip_types.AddressWithPrefix{Address: vpp.IPAddress(local), Len: 32},
			})
		}
		if _, err := session.Calls(ctx, setup); err != nil {
			return err
		}
	}
	return nil
}

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
	"os"
	"os/signal"
	"runtime/debug"

	"longline.dev/agent/internal/memory"
)

// fullRouter is the number of VLL ends on one router that docs/routers/agent.md promises.
const fullRouter = 15_000

func main() {
	debug.SetGCPercent(memory.GCPercent) // as in the agent
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

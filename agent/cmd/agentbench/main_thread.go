package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memclnt"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
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
	journal, err := ownership.OpenJournal(folder)
	if err != nil {
		return err
	}
	engine := newEngine(intent.OpenStore(folder, router), journal, used.stats)
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
	slices.Sort(slowest)
	return slowest[len(slowest)/2], nil
}

package report

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/statseg"
)

// Engine is what reporting needs of the engine.
type Engine interface {
	Look(context.Context, *intent.Intent) (*plan.Plan, *observe.Snapshot, error)
	Session() (converge.Session, error)
	Status() converge.Status
	Changed() <-chan struct{}
}

const (
	// queueLimit is an hour of samples at the default interval.
	queueLimit = 360
	// batch bounds one request; a sample of 1,000 ends is about 150 kB.
	batch = 10
	// settle gathers changes that come together into one report.
	settle = 200 * time.Millisecond
)

// Reporter counts and reports. With a nil client it only counts, for Prometheus.
type Reporter struct {
	engine   Engine
	client   *Client
	segment  *statseg.Watched
	interval time.Duration
	router   string
	version  string
	bootID   string
	log      *slog.Logger
	now      func() time.Time
	queue    *Queue
	observed chan observedBody // at most one: the newest
	newWatch chan struct{}

	mu        sync.Mutex
	meter     Meter
	simulated bool // the VPP last counted makes its counters up
	watched   []netip.Addr
}

// Options for New.
type Options struct {
	Engine          Engine
	Client          *Client // nil: no reports
	StatsSocket     string
	Interval        time.Duration
	Router, Version string
	Log             *slog.Logger
	Now             func() time.Time
}

// New draws the boot id of this run of the agent.
func New(o Options) *Reporter {
	return &Reporter{
		engine: o.Engine, client: o.Client, segment: statseg.Watch(o.StatsSocket), interval: o.Interval, router: o.Router,
		version: o.Version, log: o.Log, now: o.Now, bootID: uuid.NewString(), queue: NewQueue(queueLimit),
		observed: make(chan observedBody, 1), newWatch: make(chan struct{}, 1),
	}
}

// Dropped counts samples that the portal never got.
func (r *Reporter) Dropped() int64 { return r.queue.Dropped() }

// Totals are VPP's counters of every end as last read.
func (r *Reporter) Totals() []EndCount {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.meter.Totals()
}

// Run counts and reports until ctx ends. Sending has goroutines of its own, so that a portal that hangs
// does not stretch the samples.
func (r *Reporter) Run(ctx context.Context) {
	defer r.segment.Close()
	var senders sync.WaitGroup
	defer senders.Wait()
	if r.client != nil {
		senders.Go(func() { r.sendCounters(ctx) })
		senders.Go(func() { r.sendObserved(ctx) })
	}
	ticker := time.NewTicker(r.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.look(ctx, true)
		case <-r.engine.Changed():
			pause(ctx, settle)
			r.look(ctx, false)
		case <-r.newWatch:
			r.look(ctx, false)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// look compares VPP with the held intent once, counts if it is time to, and prepares the report.
func (r *Reporter) look(ctx context.Context, count bool) {
	status := r.engine.Status()
	held := status.Held
	if held == nil {
		held = &intent.Intent{Router: r.router}
	}
	report := observedBody{
		Schema: 1, BootID: r.bootID, AgentVersion: r.version, VPP: vppOf(status), Generation: generationOf(status),
		Encapsulations: []string{}, Interfaces: []interfaceBody{}, Routes: []routeBody{}, Ends: []endBody{},
	}
	todo, snapshot, err := r.engine.Look(ctx, held)
	if err == nil {
		watched := r.watch()
		var reachable map[netip.Addr]bool
		if reachable, err = r.reachable(ctx, held, watched); err == nil {
			report.fill(held, todo, snapshot, watched, reachable)
		}
	}
	switch {
	case err != nil:
		r.log.Warn("nothing to report about VPP", "error", err)
		r.mu.Lock()
		r.meter.Forget()
		r.mu.Unlock()
		report.VPP = vppBody{}
	case count:
		r.count(accesses(held, todo, snapshot), snapshot.Boot.MS, status.VPP != nil && status.VPP.Simulated())
	}
	select { // replace what has not been sent
	case <-r.observed:
	default:
	}
	r.observed <- report
}

func (r *Reporter) count(accesses []Access, bootMS int64, simulated bool) {
	reading, err := r.segment.Read(bootMS)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.log.Warn("no counters", "error", err)
		r.meter.Forget()
		return
	}
	r.simulated = simulated
	if sample := r.meter.Take(r.now(), reading, accesses); sample != nil {
		r.queue.Add(*sample)
	}
}

func (r *Reporter) watch() []netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.watched)
}

// reachable looks up the routes to the watched addresses and to the far ends of all tunnels.
func (r *Reporter) reachable(ctx context.Context, held *intent.Intent, watched []netip.Addr) (map[netip.Addr]bool, error) {
	session, err := r.engine.Session()
	if err != nil {
		return nil, err
	}
	addresses := slices.Clone(watched)
	for _, e := range held.Present {
		if e.Tunnel.Remote.IsValid() {
			addresses = append(addresses, e.Tunnel.Remote)
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return observe.Reachable(ctx, session, slices.Compact(addresses))
}

func (r *Reporter) sendObserved(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case report := <-r.observed:
			report.SentMS = r.now().UnixMilli()
			var answer watchBody
			if err := r.client.Post(ctx, "observed", report, &answer); err != nil {
				r.log.Warn("observed report not taken; the next one replaces it", "error", err)
				continue
			}
			r.setWatch(answer.WatchRoutes)
		}
	}
}

// setWatch keeps the addresses to look up. A list that is new is reported on at once.
func (r *Reporter) setWatch(texts []string) {
	var addresses []netip.Addr
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		if err != nil {
			r.log.Warn("the portal asks for the route to what is no address", "text", text)
			continue
		}
		addresses = append(addresses, address)
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	addresses = slices.Compact(addresses)
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(addresses, r.watched) {
		return
	}
	r.watched = addresses
	select {
	case r.newWatch <- struct{}{}:
	default:
	}
}

// sendCounters empties the queue; what is not taken is tried again with the next sample.
func (r *Reporter) sendCounters(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.queue.Added():
			for r.sendBatch(ctx) {
			}
		}
	}
}

// sendBatch reports whether there may be more to send now.
func (r *Reporter) sendBatch(ctx context.Context) bool {
	samples := r.queue.Oldest(batch)
	if len(samples) == 0 || ctx.Err() != nil {
		return false
	}
	report := countersBody{Schema: 1, BootID: r.bootID, SentMS: r.now().UnixMilli(), Dropped: r.queue.Dropped()}
	r.mu.Lock()
	report.Simulated = r.simulated
	r.mu.Unlock()
	for _, s := range samples {
		report.Samples = append(report.Samples, sampleOf(s))
	}
	var answer struct{} // how many were new is the portal's business
	err := r.client.Post(ctx, "counters", report, &answer)
	var refused *RefusedError
	if err != nil && !errors.As(err, &refused) {
		r.log.Warn("counters not taken; they are kept", "error", err)
		return false
	}
	if refused != nil {
		r.log.Error("counters refused for good", "samples", len(samples), "error", err)
	}
	r.queue.Done(samples[len(samples)-1].Seq, refused != nil)
	return true
}

package report

import (
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/spool"
	"longline.dev/agent/internal/statseg"
)

// Engine has the methods of converge.Engine that reporting needs.
type Engine interface {
	ObservedStateToReport(context.Context) (*converge.ObservedState, error)
	Session() (converge.Session, error)
	Status() converge.Status
	Changed() <-chan struct{}
	Paths() []pathwatch.Watched
	PathsChanged() <-chan struct{}
	Rebuild(index uint32, name string, requested bool) error
	UnknownVLANs(ctx context.Context, vlans []packettrace.VLAN, begin func() error) (map[packettrace.VLAN]int, error)
	ClearTracer(context.Context) error
	TestedSince(time.Time) map[intent.Key]bool
	PortalFreezes(id, reason string, until time.Time)
}

const (
	// batch is the largest number of records in one request. A sample of 1,000 ends has about 150 kB.
	batch = 10
	// settle is the time for which the reporter waits for further changes after a change, to combine them into
	// one report.
	settle = 200 * time.Millisecond
	// recentIntervals is the number of report intervals for which the agent relies on the maintenance state
	// in the portal's last response.
	recentIntervals = 4
	// pathSettle is the shortest time between two reports about changes of paths. The first change is reported
	// without delay.
	pathSettle = 100 * time.Millisecond
	// eventLimit is the largest size of the stored events (bytes). It has room for about 20,000 events.
	eventLimit = 4 << 20
)

// Reporter reads VPP's counters and sends reports to the portal. Without a client it only reads the counters,
// for Prometheus.
type Reporter struct {
	engine   Engine
	segment  *statseg.ReopeningSegment
	interval time.Duration
	router   string
	version  string
	labels   bool
	bootID   uuid.UUID
	log      *slog.Logger
	now      func() time.Time
	again    chan struct{}

	// If the Reporter has no client, the fields client, counters, events and eventRecorder are nil.
	client           Poster
	counters, events *deliverer
	eventRecorder    *eventRecorder
	observed         chan observedBody // at most one report: the newest that has not been sent

	observedTaken atomic.Int64 // when the portal last accepted an "observed" report (Unix time in ms), 0 for never
	// maintenance is the maintenance state in the portal's last response, or nil if the response had none.
	maintenance atomic.Pointer[bool]

	// Only Run uses view and routes. view has the interfaces of the last observation. Their counters are
	// still read while VPP does not respond. routes has the results of the last route lookups.
	view   countedView
	routes lookedUpRoutes

	searching sync.WaitGroup // the goroutines that search for frames of unknown VLANs
	found     chan vlanSearch
	aside     *durable.SetAsideFile // the file of rebuilds if it was set aside, otherwise nil

	mu         sync.Mutex
	vlans      lostVLANs
	searchRuns bool
	sampler    Sampler
	watched    []netip.Addr
	// underlayTable is the table for looking up the watched routes, from the portal's last response.
	underlayTable       uint32
	ignoreDefaultRoutes bool
	ends                []EndState
}

// countedView has the interfaces to count from the last observation of VPP: the customer's side of each end,
// and the ports.
type countedView struct {
	View            // BootMS is 0 if there was no observation
	epoch     int64 // epoch of the stats segment before that observation
	simulated bool
}

// Options for New.
type Options struct {
	Engine          Engine
	Client          Poster       // nil if no reports are sent
	Folder          string       // where reports wait for the portal
	StoreLimit      int64        // maximum bytes of counter samples in Folder
	First           func() error // reserves disk space for data that has precedence over reports
	StatsSocket     string
	Interval        time.Duration
	Router, Version string
	// IgnoreDefaultRoutes means that a destination counts as unreachable if only a default route leads to it.
	IgnoreDefaultRoutes bool
	Labels              bool // request the names of lines from the portal
	Log                 *slog.Logger
	Now                 func() time.Time
}

// New returns a Reporter. It creates the boot ID of this run of the agent, and opens the undelivered reports
// of earlier runs.
func New(o Options) *Reporter {
	r := &Reporter{
		engine: o.Engine, client: o.Client, segment: statseg.NewReopeningSegment(o.StatsSocket), interval: o.Interval, router: o.Router,
		version: o.Version, ignoreDefaultRoutes: o.IgnoreDefaultRoutes, labels: o.Labels, log: o.Log, now: o.Now, bootID: uuid.New(),
		observed: make(chan observedBody, 1), again: make(chan struct{}, 1), found: make(chan vlanSearch, 1),
	}
	r.vlans.rebuilds, r.aside = openRebuilds(o.Folder, o.Log)
	if o.Client == nil {
		return r
	}
	forward := func(kind string, limit int64) *deliverer {
		store := spool.Open(filepath.Join(o.Folder, kind), limit)
		store.First = o.First
		return &deliverer{kind: kind, spool: store, to: o.Client, log: o.Log, now: o.Now}
	}
	r.counters, r.events = forward("counters", o.StoreLimit), forward("events", eventLimit)
	r.counters.compose = composeCounters(o.Now, r.counters.spool.Dropped)
	r.events.compose = composeEvents(o.Now)
	r.eventRecorder = &eventRecorder{bootID: r.bootID, spool: r.events.spool}
	return r
}

// SetAside returns the files that New could not read and has set aside. It also returns the folders in which
// earlier runs of the agent may have set files aside.
func (r *Reporter) SetAside() (asides []durable.SetAsideFile, folders []string) {
	if r.aside != nil {
		asides = append(asides, *r.aside)
	}
	if r.client == nil {
		return asides, nil
	}
	for _, d := range []*deliverer{r.counters, r.events} {
		folders = append(folders, d.spool.Folder())
		if aside := d.spool.SetAside(); aside != nil {
			asides = append(asides, *aside)
		}
	}
	return asides, folders
}

// ReportNow makes the reporter compare and report immediately. Call it when something may have changed.
func (r *Reporter) ReportNow() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// Maintenance reports whether the portal says that this router is under maintenance. known is false if the
// portal's last response did not contain this state, or if it arrived more than a few report intervals ago.
func (r *Reporter) Maintenance() (on, known bool) {
	state, age := r.maintenance.Load(), r.now().UnixMilli()-r.observedTaken.Load()
	if state == nil || age > (recentIntervals*r.interval).Milliseconds() {
		return false, false
	}
	return *state, true
}

// Totals returns VPP's counters of every end as last read.
func (r *Reporter) Totals() []EndCount {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sampler.Totals()
}

// LossTotals returns VPP's counters of losses, for the ports and for the whole router, as last read.
func (r *Reporter) LossTotals() ([]PortCount, *RouterCount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sampler.LossTotals()
}

// Run counts and reports until ctx ends. Separate goroutines send the reports, so that the samples are not
// delayed if the portal hangs.
func (r *Reporter) Run(ctx context.Context) {
	defer r.segment.Close()
	defer r.close()
	var senders sync.WaitGroup
	defer senders.Wait()
	defer r.searching.Wait()
	if r.client != nil {
		senders.Go(func() { r.counters.run(ctx) })
		senders.Go(func() { r.events.run(ctx) })
		senders.Go(func() { r.sendObserved(ctx) })
	}
	ticker := time.NewTicker(r.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.prepare(ctx, onTick)
		case <-r.engine.Changed():
			pause(ctx, settle)
			r.prepare(ctx, onChange)
		case <-r.engine.PathsChanged():
			r.prepare(ctx, onRequest)
			pause(ctx, pathSettle) // many paths fail together, and some change repeatedly
		case <-r.again:
			r.prepare(ctx, onRequest)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// withoutVPP returns a report without an observation of VPP. Its lists are empty instead of null.
func (r *Reporter) withoutVPP(status converge.Status) observedBody {
	return observedBody{
		Schema: 1, BootID: r.bootID.String(), ObservationNumber: status.ObservationNumber, AgentVersion: r.version, VPP: vppOf(status), Generation: generationOf(status),
		Encapsulations: []string{}, Policing: string(observe.NoPolicing), Interfaces: []interfaceBody{}, Routes: []routeBody{},
		Ends: []endBody{}, Paths: []pathBody{}, Circuits: []circuitBody{}, SetAside: setAsideOf(status), Labels: r.labels,
		// This agent has these abilities regardless of VPP and of the agent's configuration. The portal requests
		// them only of agents that report them.
		Freezes: true, LinkLossForwarding: true,
	}
}

// occasion is the reason for preparing a report.
type occasion int

const (
	onRequest occasion = iota // a BFD session, the intent or the watched routes changed
	onChange                  // something in VPP may have changed
	onTick                    // the report interval has passed
)

// prepare prepares a report of VPP's last observed state, and takes a sample if one is due. From VPP, it
// reads only the stats segment and the routes that are due on this occasion.
func (r *Reporter) prepare(ctx context.Context, why occasion) {
	count := why == onTick
	status := r.engine.Status()
	report := r.withoutVPP(status)
	report.Freeze = freezeOf(status, r.now())
	state, err := r.engine.ObservedStateToReport(ctx)
	if ctx.Err() != nil {
		return // the agent is ending, and therefore closed the connection to VPP
	}
	var sample *Sample
	var events vlanEvents
	switch {
	case err != nil && status.Absent:
		r.forget()
	case err != nil && count:
		sample = r.countUnanswered()
	case count:
		r.view = countedView{viewOf(state), state.Snapshot.Epoch, status.VPP != nil && status.VPP.Simulated()}
		r.tidyUp(ctx, state, status)
		sample, events = r.count(ctx)
	}
	var watched []observe.Destination
	var reachable map[observe.Destination]bool
	if err == nil {
		watched = r.watchedRoutes()
		reachable, err = r.reachable(ctx, state.Intent, watched, why)
	}
	if ctx.Err() != nil {
		return
	}
	now := r.now()
	status = r.engine.Status() // a converge may have ended while VPP was read
	if err != nil {
		r.log.Warn("nothing to report about VPP", "error", err)
		report.VPP = awayOf(status)
	}
	if err == nil {
		report.Adoption = "refused"
		if status.Adoption {
			report.Adoption = "allowed"
		}
		report.fill(state, status.NeverWatch, r.engine.Paths(), watched, reachable, r.loads(), r.vlanLosses())
	}
	r.noteEnds(report.Ends)
	if r.client == nil {
		return
	}
	if sample != nil {
		r.store(*sample, r.view.simulated)
	}
	view := routerViewOf(status, state)
	view.vlans = events
	if err := r.eventRecorder.record(view, now); err != nil {
		r.log.Error("events lost", "error", err)
	}
	select { // replace an unsent report
	case <-r.observed:
	default:
	}
	r.observed <- report
}

// count reads the counters. It returns the sample since the last reading, and the events about rebuilds. The
// sample is nil in the cases of Sampler.Take.
func (r *Reporter) count(ctx context.Context) (*Sample, vlanEvents) {
	reading, err := r.segment.Read(r.view.BootMS)
	if err != nil {
		r.log.Warn("no counters", "error", err)
		r.forget()
		return nil, vlanEvents{}
	}
	now := r.now()
	events := r.watchVLANs(ctx, now, reading)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Tested = r.engine.TestedSince(r.sampler.last)
	return r.sampler.Take(now, reading, r.view.View), events
}

// countUnanswered returns a sample while VPP does not respond. It uses the interfaces of the last observation
// as long as no interface has been created or deleted in that run of VPP. The agent detects this by the epoch
// of the stats segment, without a request to VPP.
func (r *Reporter) countUnanswered() *Sample {
	if r.view.BootMS == 0 {
		return nil
	}
	reading, err := r.segment.Reread()
	if err != nil || reading.BootMS != r.view.BootMS || reading.Epoch != r.view.epoch {
		r.log.Warn("no counters while VPP does not answer: its interfaces may have changed", "error", err)
		r.forget()
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Tested = r.engine.TestedSince(r.sampler.last)
	return r.sampler.TakeUnanswered(r.now(), reading, r.view.View)
}

// forget discards the last counters, so that the next sample starts with the next reading.
func (r *Reporter) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view = countedView{}
	r.vlans.forgetFrames()
	r.sampler.Forget()
}

func (r *Reporter) loads() Loads {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sampler.Loads()
}

func (r *Reporter) store(s Sample, simulated bool) {
	data, err := (&storedSample{BootID: r.bootID, KernelBoot: kernelBoot(), Simulated: simulated, Sample: s}).marshal()
	if err == nil {
		err = r.counters.spool.Append(data)
	}
	if err != nil {
		r.log.Error("a sample is lost", "error", err)
	}
}

func (r *Reporter) close() {
	if r.client == nil {
		return
	}
	for _, d := range []*deliverer{r.counters, r.events} {
		if err := d.spool.Close(); err != nil {
			r.log.Warn("closing a spool", "error", err)
		}
	}
}

func (r *Reporter) watchedRoutes() []observe.Destination {
	r.mu.Lock()
	defer r.mu.Unlock()
	routes := make([]observe.Destination, 0, len(r.watched))
	for _, address := range r.watched {
		routes = append(routes, observe.Destination{Table: r.underlayTable, Address: address})
	}
	return routes
}

func (r *Reporter) sendObserved(ctx context.Context) {
	var stored etags
	for {
		select {
		case <-ctx.Done():
			return
		case report := <-r.observed:
			report.SentMS = r.now().UnixMilli()
			watched := stored.watch
			answer, err := stored.post(ctx, r.client, report)
			if err != nil {
				r.log.Warn("observed report not taken; the next one replaces it", "error", err)
				continue
			}
			r.maintenance.Store(answer.Maintenance)
			r.applyFreeze(answer.Freeze)
			r.observedTaken.Store(r.now().UnixMilli())
			routes := answer.WatchRoutes
			if routes == nil && watched == "" {
				routes = []string{}
			}
			r.setWatchedRoutes(answer.UnderlayTable, routes)
		}
	}
}

// Package metrics exports the metrics of the agent and its VLL ends to Prometheus.
package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/report"
	"longline.dev/agent/internal/statseg"
)

// Engine provides the agent's own metrics.
type Engine interface{ Status() converge.Status }

// Reporter provides the metrics of the ends and of the reports. The keys of its maps are kinds of reports.
type Reporter interface {
	Totals() []report.EndCount
	Ends() []report.EndState
	LossTotals() ([]report.PortCount, *report.RouterCount)
	Dropped() map[string]int64
	Waiting() map[string]int64
	Taken() map[string]time.Time
}

// all has the descriptions of all metrics.
var all []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	all = append(all, prometheus.NewDesc("longline_"+name, help, labels, nil))
	return all[len(all)-1]
}

var (
	info         = describe("agent_info", "Version of the agent and of the VPP it is connected to.", "version", "vpp_version")
	connected    = describe("vpp_connected", "1 while the agent is connected to VPP.")
	hangs        = describe("vpp_hangs", "1 while VPP accepts connections but does not respond; VPP must be restarted.")
	overlooked   = describe("vpp_overlooked_clients_total", "Dead API clients that VPP had not noticed until the agent made it check for them.")
	connections  = describe("vpp_connections_total", "Connections to VPP since the agent started; each beyond the first is a reconnection.")
	generation   = describe("intent_generation", "Generation of the stored and of the applied intent.", "state")
	durations    = describe("converge_duration_seconds", "Duration of reconciliations.")
	operations   = describe("vpp_operations_total", "Messages that change VPP, by VPP's reply: ok or refused.", "message", "result")
	paths        = describe("vpp_watched_paths", "Paths to other routers that VPP watches by BFD, by state.", "state")
	setAside     = describe("set_aside_files", "Files that the agent could not use and set aside, until an operator removes them.")
	frozen       = describe("frozen", "1 while the router is frozen, 2 afterwards until an operator has acknowledged the differences.")
	repairs      = describe("drift_repairs_total", "Drift checks that found something to repair.")
	observations = describe("vpp_looks_total", "Readings of VPP's configuration: full, quick (glance) and partial ones (peek).", "extent")
	dropped      = describe("report_dropped_total", "Samples and events that the portal will never receive.", "kind")
	waiting      = describe("report_queue_length", "Samples and events that the portal has not accepted yet.", "kind")
	taken        = describe("report_last_taken_timestamp_seconds", "When the portal last accepted a report.", "kind")
	endBytes     = describe("end_bytes_total", "Bytes of a VLL end; in is what the customer sent into the VLL.", "vll", "end", "direction")
	endFrames    = describe("end_frames_total", "Frames of a VLL end; in is what the customer sent into the VLL.", "vll", "end", "direction")
	endInSync    = describe("end_in_sync", "1 if VPP has a VLL end as intended, 0 if not.", "vll", "end")
	endLinkUp    = describe("end_link_up", "1 when the customer's port of a VLL end is up, 0 when not; none while it is shut down because of the far end's link.",
		"vll", "end")
	endPathUp = describe("end_path_up", "1 if the path of a VLL end to the other router is up, 0 if not; absent if the path is not watched.", "vll", "end")

	segmentSize = describe("vpp_stats_segment_size_bytes", "Size of VPP's stats segment; VPP aborts when it is full.")
	segmentUsed = describe("vpp_stats_segment_used_bytes", "Used bytes of VPP's stats segment, as reported by VPP.")

	policedBytes = describe("end_policed_bytes_total", "Bytes that a VLL end's policer counted since it was created or changed; violating traffic is dropped.",
		"vll", "end", "colour")
	policedFrames = describe("end_policed_frames_total", "Frames that a VLL end's policer counted since it was created or changed; violating traffic is dropped.",
		"vll", "end", "colour")

	endDropped = describe("end_dropped_frames_total", "Frames of a VLL end that VPP dropped, including those that the policer dropped.",
		"vll", "end", "direction")
	portFrames  = describe("interface_frames_total", "Frames of an interface that the agent did not create.", "interface", "direction")
	portDropped = describe("interface_dropped_frames_total", "Frames received on an interface that VPP dropped for any reason.", "interface")
	portLost    = describe("interface_lost_frames_total", "Frames that an interface lost: missed, with errors, or without a buffer.", "interface", "reason")
	noTunnel    = describe("vpp_no_such_tunnel_packets_total", "Packets received for a tunnel that this router does not have.")
	fragments   = describe("vpp_fragments_sent_total", "Fragments of packets that the router sent.")
	reassembled = describe("vpp_reassembled_packets_total", "Packets to the router received in fragments, by the result of their reassembly.", "result")
	buffers     = describe("vpp_buffers", "Buffers of VPP, in all pools.")
	buffersFree = describe("vpp_buffers_free", "Free buffers of VPP; without a free buffer it can receive nothing.")
)

// Metrics gathers all values at each scrape; it stores nothing between scrapes.
type Metrics struct {
	*prometheus.Registry
	engine      Engine
	reporter    Reporter
	version     string
	connections atomic.Uint64
	overlooked  atomic.Uint64

	// Segment returns the memory use of VPP's stats segment. If Segment is nil, the memory use is not
	// exported. Set it before the first scrape.
	Segment func() (statseg.Memory, error)
}

// New returns a gatherer of the agent's metrics.
func New(engine Engine, reporter Reporter, version string) *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry(), engine: engine, reporter: reporter, version: version}
	m.MustRegister(collector{m})
	return m
}

// Connected counts a connection to VPP.
func (m *Metrics) Connected() { m.connections.Add(1) }

// Noticed counts dead API clients whose end VPP has not noticed.
func (m *Metrics) Noticed(clients []string) { m.overlooked.Add(uint64(len(clients))) }

// collector keeps Collect and Describe out of the method set of Metrics, which has the methods of its
// registry.
type collector struct{ m *Metrics }

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range all {
		ch <- d
	}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	status := c.m.engine.Status()
	e := emitter{ch}
	e.agent(c.m.version, status)
	e.count(connections, float64(c.m.connections.Load()))
	e.count(overlooked, float64(c.m.overlooked.Load()))
	e.reports(c.m.reporter)
	if status.VPP != nil { // a VPP that does not respond does not provide its stats segment either
		e.segment(c.m.Segment)
	}
	for _, end := range c.m.reporter.Totals() {
		e.count(endBytes, float64(end.In.Bytes), end.Key.VLL, end.Key.End, "in")
		e.count(endBytes, float64(end.Out.Bytes), end.Key.VLL, end.Key.End, "out")
		e.count(endFrames, float64(end.In.Packets), end.Key.VLL, end.Key.End, "in")
		e.count(endFrames, float64(end.Out.Packets), end.Key.VLL, end.Key.End, "out")
		e.policed(end)
		e.known(endDropped, end.Dropped.In, end.Key.VLL, end.Key.End, "in")
		e.known(endDropped, end.Dropped.Out, end.Key.VLL, end.Key.End, "out")
	}
	for _, end := range c.m.reporter.Ends() {
		e.flag(endInSync, end.InSync, end.Key.VLL, end.Key.End)
		if !end.ShutDown {
			e.flag(endLinkUp, end.LinkUp, end.Key.VLL, end.Key.End)
		}
		if end.PathUp != nil {
			e.flag(endPathUp, *end.PathUp, end.Key.VLL, end.Key.End)
		}
	}
	e.losses(c.m.reporter.LossTotals())
}

// known emits a counter if VPP has it.
func (e emitter) known(d *prometheus.Desc, count *uint64, labels ...string) {
	if count != nil {
		e.count(d, float64(*count), labels...)
	}
}

func (e emitter) losses(ports []report.PortCount, router *report.RouterCount) {
	for _, port := range ports {
		e.count(portFrames, float64(port.Rx), port.Name, "rx")
		e.count(portFrames, float64(port.Tx), port.Name, "tx")
		e.count(portDropped, float64(port.Drops), port.Name)
		for reason, frames := range map[string]uint64{
			"rx_miss": port.RxMiss, "rx_error": port.RxErrors, "rx_no_buffer": port.RxNoBuffer, "tx_error": port.TxErrors,
		} {
			e.count(portLost, float64(frames), port.Name, reason)
		}
	}
	if router == nil {
		return
	}
	e.known(noTunnel, router.NoSuchTunnel)
	e.known(fragments, router.FragmentsSent)
	e.known(reassembled, router.Reassembled, "ok")
	e.known(reassembled, router.ReassemblyFailed, "failed")
	if router.Total != 0 {
		e.gauge(buffers, float64(router.Total))
		e.gauge(buffersFree, float64(router.Free))
	}
}

// emitter emits the metrics of one scrape.
type emitter struct{ ch chan<- prometheus.Metric }

func (e emitter) gauge(d *prometheus.Desc, value float64, labels ...string) {
	e.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (e emitter) count(d *prometheus.Desc, value float64, labels ...string) {
	e.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}

func (e emitter) flag(d *prometheus.Desc, set bool, labels ...string) {
	value := 0.0
	if set {
		value = 1
	}
	e.gauge(d, value, labels...)
}

func frozenValue(current *freeze.Freeze) float64 {
	switch {
	case current == nil:
		return 0
	case current.Over(time.Now()):
		return 2
	}
	return 1
}

func (e emitter) agent(version string, s converge.Status) {
	vppVersion := ""
	if s.VPP != nil {
		vppVersion = s.VPP.Version
	}
	e.gauge(info, 1, version, vppVersion)
	e.flag(connected, s.VPP != nil)
	e.flag(hangs, s.Hangs())
	if s.Intent != nil {
		e.gauge(generation, float64(s.Intent.Generation), "held")
	}
	if s.Applied != nil {
		e.gauge(generation, float64(s.Applied.Generation), "applied")
	}
	e.gauge(setAside, float64(len(s.SetAside)))
	e.gauge(frozen, frozenValue(s.Freeze))
	byState := make(map[pathwatch.State]int)
	for _, path := range s.Paths {
		byState[path.State]++
	}
	for _, state := range pathwatch.States {
		e.gauge(paths, float64(byState[state]), string(state))
	}
	e.count(repairs, float64(s.Statistics.Repairs))
	// The label values are part of the contract. They are older than the names of the observations in the
	// code and therefore differ.
	e.count(observations, float64(s.Statistics.FullObservations), "full")
	e.count(observations, float64(s.Statistics.QuickObservations), "glance")
	e.count(observations, float64(s.Statistics.PartialObservations), "peek")
	buckets := make(map[float64]uint64)
	below := uint64(0)
	for i, bound := range converge.DurationBounds {
		below += s.Statistics.Durations.Counts[i]
		buckets[bound.Seconds()] = below
	}
	e.ch <- prometheus.MustNewConstHistogram(durations, s.Statistics.Converges, s.Statistics.Durations.Sum.Seconds(), buckets)
	for op, n := range s.Statistics.Operations {
		e.count(operations, float64(n), op.Message, op.Result)
	}
}

func (e emitter) reports(r Reporter) {
	for kind, n := range r.Dropped() {
		e.count(dropped, float64(n), kind)
	}
	for kind, n := range r.Waiting() {
		e.gauge(waiting, float64(n), kind)
	}
	for kind, at := range r.Taken() {
		e.gauge(taken, float64(at.UnixMilli())/1000, kind)
	}
}

// segment emits nothing while VPP is away or does not provide the values.
func (e emitter) segment(read func() (statseg.Memory, error)) {
	if read == nil {
		return
	}
	memory, err := read()
	if err != nil || memory.Total == 0 {
		return
	}
	e.gauge(segmentSize, float64(memory.Total))
	e.gauge(segmentUsed, float64(memory.Used))
}

func (e emitter) policed(end report.EndCount) {
	if end.Policed == nil {
		return
	}
	for colour, count := range map[string]statseg.Count{
		"conform": end.Policed.Conform, "exceed": end.Policed.Exceed, "violate": end.Policed.Violate,
	} {
		e.count(policedBytes, float64(count.Bytes), end.Key.VLL, end.Key.End, colour)
		e.count(policedFrames, float64(count.Packets), end.Key.VLL, end.Key.End, colour)
	}
}

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/report"
	"longline.dev/agent/internal/statseg"
)

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

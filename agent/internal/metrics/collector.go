// Package metrics shows the agent and its VLL ends to Prometheus.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/report"
)

// Engine is where the agent's own figures come from.
type Engine interface{ Status() converge.Status }

// Counter is where the figures of the ends come from.
type Counter interface {
	Totals() []report.EndCount
	Dropped() int64
}

type collector struct {
	engine  Engine
	counter Counter
	version string
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("longline_"+name, help, labels, nil)
}

var (
	info      = describe("agent_info", "Version of the agent and of the VPP it is connected to.", "version", "vpp_version")
	connected = describe("vpp_connected", "1 while the agent is connected to VPP.")
	held      = describe("intent_generation", "Generation of the intent, held and applied.", "state")
	converges = describe("converges_total", "Passes over the intent since the agent started.")
	writes    = describe("vpp_writes_total", "Messages sent to VPP that change it.")
	repairs   = describe("drift_repairs_total", "Drift checks that found something to repair.")
	duration  = describe("converge_duration_seconds", "How long the last pass took.")
	dropped   = describe("report_samples_dropped_total", "Counter samples that the portal never got.")
	endBytes  = describe("end_bytes_total", "Bytes of a VLL end; in is what the customer sent into the VLL.", "vll", "end", "direction")
	endFrames = describe("end_frames_total", "Frames of a VLL end; in is what the customer sent into the VLL.", "vll", "end", "direction")
)

// Registry gathers everything on demand; nothing is kept between scrapes.
func Registry(engine Engine, counter Counter, version string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{engine, counter, version})
	return r
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{info, connected, held, converges, writes, repairs, duration, dropped, endBytes, endFrames} {
		ch <- d
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	count := func(d *prometheus.Desc, value uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	s := c.engine.Status()
	vppVersion, up := "", 0.0
	if s.VPP != nil {
		vppVersion, up = s.VPP.Version, 1
	}
	gauge(info, 1, c.version, vppVersion)
	gauge(connected, up)
	if s.Held != nil {
		gauge(held, float64(s.Held.Generation), "held")
	}
	if s.Applied != nil {
		gauge(held, float64(s.Applied.Generation), "applied")
	}
	count(converges, s.Totals.Converges)
	count(writes, s.Totals.Writes)
	count(repairs, s.Totals.Repairs)
	gauge(duration, s.Totals.LastDuration.Seconds())
	count(dropped, uint64(c.counter.Dropped()))
	for _, e := range c.counter.Totals() {
		count(endBytes, e.In.Bytes, e.Key.VLL, e.Key.End, "in")
		count(endBytes, e.Out.Bytes, e.Key.VLL, e.Key.End, "out")
		count(endFrames, e.In.Packets, e.Key.VLL, e.Key.End, "in")
		count(endFrames, e.Out.Packets, e.Key.VLL, e.Key.End, "out")
	}
}

package metrics

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/report"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

type busyRouter struct{}

func (busyRouter) Status() converge.Status {
	s := converge.Status{
		SetAside: []durable.SetAsideFile{{Path: "/var/lib/longline/intent.json.set-aside", Why: "unexpected end of JSON input"}},
		Intent:   &intent.Intent{Generation: 43}, Applied: &converge.Applied{Generation: 42}, VPP: &vpp.Info{Version: "25.10-release"},
	}
	s.Paths = []pathwatch.Watched{{State: pathwatch.Up}, {State: pathwatch.Up}, {State: pathwatch.Down}}
	s.Statistics.Converges, s.Statistics.Repairs = 3, 1
	s.Statistics.FullObservations, s.Statistics.QuickObservations = 4, 90
	s.Statistics.Durations.Counts[0], s.Statistics.Durations.Counts[len(converge.DurationBounds)] = 2, 1
	s.Statistics.Durations.Sum = 12 * time.Second
	s.Statistics.Operations = map[converge.Operation]uint64{
		{Message: "create_subif", Result: "ok"}: 7, {Message: "create_subif", Result: "refused"}: 1,
	}
	return s
}

func (busyRouter) Totals() []report.EndCount {
	return []report.EndCount{{
		Key: intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"},
		In:  statseg.Count{Packets: 10, Bytes: 1000}, Out: statseg.Count{Packets: 20, Bytes: 3000},
		Policed: &report.Colours{Conform: statseg.Count{Packets: 7, Bytes: 700}, Violate: statseg.Count{Packets: 3, Bytes: 300}},
		Dropped: report.Dropped{In: number(4)},
	}}
}

func (busyRouter) Ends() []report.EndState {
	down := false
	return []report.EndState{
		{Key: intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", End: "a"}, InSync: true, PathUp: &down},
		{Key: intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a02", End: "z"}, LinkUp: true},
		{Key: intent.Key{VLL: "6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a03", End: "a"}, InSync: true, ShutDown: true},
	}
}

func (busyRouter) LossTotals() ([]report.PortCount, *report.RouterCount) {
	return []report.PortCount{{Name: "bb0", Rx: 100, Tx: 200, Drops: 3, RxMiss: 4, RxErrors: 5, RxNoBuffer: 6, TxErrors: 7}}, &report.RouterCount{
		RouterErrors: statseg.RouterErrors{NoSuchTunnel: number(8), FragmentsSent: number(9), Reassembled: number(10), ReassemblyFailed: number(11)},
		Buffers:      statseg.Buffers{Total: 16384, Free: 12},
	}
}

func number(n uint64) *uint64 { return &n }

func (busyRouter) Dropped() map[string]int64 { return map[string]int64{"counters": 5, "events": 0} }
func (busyRouter) Waiting() map[string]int64 { return map[string]int64{"counters": 6, "events": 2} }
func (busyRouter) Taken() map[string]time.Time {
	return map[string]time.Time{"observed": time.UnixMilli(1_790_000_000_500)}
}

func gather(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	m := New(busyRouter{}, busyRouter{}, "0.1.0")
	m.Connected()
	m.Connected()
	m.Noticed([]string{"a", "b", "c"})
	m.Segment = func() (statseg.Memory, error) { return statseg.Memory{Total: 32 << 20, Used: 8 << 20}, nil }
	families, err := m.Gather() // also checks for duplicates and consistency
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

// labelled returns the only metric of a family that has all these label values.
func labelled(t *testing.T, f *dto.MetricFamily, values ...string) *dto.Metric {
	t.Helper()
	for _, m := range f.GetMetric() {
		var has []string
		for _, pair := range m.GetLabel() {
			has = append(has, pair.GetValue())
		}
		if !slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(has, v) }) {
			return m
		}
	}
	t.Fatalf("%s has no metric with %v", f.GetName(), values)
	return nil
}

func TestAPortThatIsShutDownHasNoLinkMetric(t *testing.T) {
	if ends := gather(t)["longline_end_link_up"].GetMetric(); len(ends) != 2 {
		t.Errorf("links are reported of %v", ends)
	}
}

func TestTheMetricsHaveTheAgentsValues(t *testing.T) {
	got := gather(t)
	for name, c := range map[string]struct {
		labels []string
		want   float64
	}{
		"longline_vpp_connected":                       {nil, 1},
		"longline_vpp_connections_total":               {nil, 2},
		"longline_vpp_hangs":                           {nil, 0},
		"longline_end_in_sync":                         {[]string{"a"}, 1},
		"longline_end_link_up":                         {[]string{"z"}, 1},
		"longline_end_path_up":                         {[]string{"a"}, 0},
		"longline_vpp_overlooked_clients_total":        {nil, 3},
		"longline_intent_generation":                   {[]string{"applied"}, 42},
		"longline_vpp_operations_total":                {[]string{"create_subif", "refused"}, 1},
		"longline_drift_repairs_total":                 {nil, 1},
		"longline_set_aside_files":                     {nil, 1},
		"longline_vpp_watched_paths":                   {[]string{"up"}, 2},
		"longline_vpp_looks_total":                     {[]string{"glance"}, 90},
		"longline_report_dropped_total":                {[]string{"counters"}, 5},
		"longline_report_queue_length":                 {[]string{"events"}, 2},
		"longline_report_last_taken_timestamp_seconds": {[]string{"observed"}, 1_790_000_000.5},
		"longline_end_bytes_total":                     {[]string{"out"}, 3000},
		"longline_end_frames_total":                    {[]string{"in"}, 10},
		"longline_end_policed_bytes_total":             {[]string{"conform"}, 700},
		"longline_end_policed_frames_total":            {[]string{"violate"}, 3},
		"longline_end_dropped_frames_total":            {[]string{"in"}, 4},
		"longline_interface_frames_total":              {[]string{"bb0", "tx"}, 200},
		"longline_interface_dropped_frames_total":      {[]string{"bb0"}, 3},
		"longline_interface_lost_frames_total":         {[]string{"bb0", "rx_no_buffer"}, 6},
		"longline_vpp_no_such_tunnel_packets_total":    {nil, 8},
		"longline_vpp_fragments_sent_total":            {nil, 9},
		"longline_vpp_reassembled_packets_total":       {[]string{"failed"}, 11},
		"longline_vpp_buffers":                         {nil, 16384},
		"longline_vpp_buffers_free":                    {nil, 12},
		"longline_vpp_stats_segment_size_bytes":        {nil, 32 << 20},
		"longline_vpp_stats_segment_used_bytes":        {nil, 8 << 20},
		"longline_agent_info":                          {[]string{"0.1.0", "25.10-release"}, 1},
	} {
		m := labelled(t, got[name], c.labels...)
		if value := m.GetGauge().GetValue() + m.GetCounter().GetValue(); value != c.want {
			t.Errorf("%s is %v, want %v", name, value, c.want)
		}
	}
	h := got["longline_converge_duration_seconds"].GetMetric()[0].GetHistogram()
	buckets := h.GetBucket()
	if h.GetSampleCount() != 3 || h.GetSampleSum() != 12 || buckets[0].GetUpperBound() != 0.005 || buckets[0].GetCumulativeCount() != 2 ||
		buckets[len(buckets)-1].GetCumulativeCount() != 2 {
		t.Errorf("durations are %v", h)
	}
}

// TestNamesFollowTheRulesOfPrometheus: the rules of promtool check metrics (promlint), and base units.
func TestNamesFollowTheRulesOfPrometheus(t *testing.T) {
	form := regexp.MustCompile(`^longline_[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	foreign := []string{"milliseconds", "ms", "minutes", "kilobytes", "mb", "bits", "percent", "octets"}
	for name, f := range gather(t) {
		words := strings.Split(name, "_")
		last := words[len(words)-1]
		kind := f.GetType()
		switch {
		case !form.MatchString(name):
			t.Errorf("%s is not in snake case under our prefix", name)
		case f.GetHelp() == "" || !strings.HasSuffix(f.GetHelp(), "."):
			t.Errorf("%s has no sentence of help", name)
		case (last == "total") != (kind == dto.MetricType_COUNTER):
			t.Errorf("%s is a %s", name, kind)
		case slices.ContainsFunc(words, func(w string) bool { return slices.Contains(foreign, w) }):
			t.Errorf("%s is not in base units", name)
		case slices.Contains([]string{"count", "sum", "bucket"}, last):
			t.Errorf("%s ends like a part of a histogram", name)
		case slices.Contains(words, strings.ToLower(kind.String())):
			t.Errorf("%s names its own type", name)
		case kind == dto.MetricType_HISTOGRAM && last != "seconds" && last != "bytes":
			t.Errorf("%s has no unit", name)
		case kind == dto.MetricType_UNTYPED:
			t.Errorf("%s has no type", name)
		}
		for _, m := range f.GetMetric() {
			for _, pair := range m.GetLabel() {
				if label := pair.GetName(); !regexp.MustCompile(`^[a-z][a-z_]*$`).MatchString(label) || label == "le" {
					t.Errorf("%s has the label %s", name, label)
				}
			}
		}
	}
}

func TestEveryMetricIsGathered(t *testing.T) {
	if got := gather(t); len(got) != len(all) {
		t.Errorf("%d families are gathered of %d described", len(got), len(all))
	}
}

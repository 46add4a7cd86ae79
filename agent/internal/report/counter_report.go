package report

import (
	"time"

	"longline.dev/agent/internal/spool"
)

// composeCounters makes a report of those samples at the head that come from one run of the agent and one
// kind of VPP.
func composeCounters(now func() time.Time, dropped func() int64) func([]spool.Record) (any, int, error) {
	return func(records []spool.Record) (any, int, error) {
		first, err := unmarshal(records[0].Data)
		if err != nil {
			return nil, 0, err
		}
		report := countersBody{
			Schema: 1, BootID: first.BootID.String(), SentMS: now().UnixMilli(), Simulated: first.Simulated,
			Dropped: dropped(), Samples: []sampleBody{sampleOf(first.Sample)},
		}
		for _, record := range records[1:] {
			next, err := unmarshal(record.Data)
			if err != nil || next.BootID != first.BootID || next.Simulated != first.Simulated {
				break // its turn comes with the next report
			}
			report.Samples = append(report.Samples, sampleOf(next.Sample))
		}
		return report, len(report.Samples), nil
	}
}

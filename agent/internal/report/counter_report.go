package report

import (
	"encoding/json"
	"time"

	"longline.dev/agent/internal/spool"
)

// reportBytes bounds the samples of one report, as they are encoded. The portal takes 32 MiB, and a report of this size passes
// 4 Mbit/s within the time that a request has. A larger sample goes alone.
const reportBytes = 4 << 20

// composeCounters makes a report of those samples at the head that come from one run of the agent and one
// kind of VPP, up to reportBytes.
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
		size := 0
		if len(records) > 1 {
			size = encodedBytes(report.Samples[0])
		}
		for _, record := range records[1:] {
			next, err := unmarshal(record.Data)
			if err != nil || next.BootID != first.BootID || next.Simulated != first.Simulated {
				break // it goes with the next report
			}
			sample := sampleOf(next.Sample)
			if size += encodedBytes(sample); size > reportBytes {
				break
			}
			report.Samples = append(report.Samples, sample)
		}
		return report, len(report.Samples), nil
	}
}

func encodedBytes(sample sampleBody) int {
	data, err := json.Marshal(sample)
	if err != nil {
		return reportBytes + 1 // nothing else goes with it
	}
	return len(data)
}

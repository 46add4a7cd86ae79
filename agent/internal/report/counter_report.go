package report

import (
	"encoding/json"
	"time"

	"longline.dev/agent/internal/spool"
)

// reportBytes limits the encoded size of the samples in one report. The portal accepts 32 MiB, and a report
// of this size passes a link of 4 Mbit/s within a request's time limit. A larger sample is sent alone.
const reportBytes = 4 << 20

// composeCounters returns a report of the first samples, as many as belong to one run of the agent and one
// kind of VPP and fit in reportBytes.
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
				break // it is sent with the next report
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
		return reportBytes + 1 // no other sample is sent with it
	}
	return len(data)
}

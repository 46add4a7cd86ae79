package report

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"longline.dev/agent/internal/spool"
)

// reportBytes is the largest encoded size of the samples in one report (bytes). The portal accepts 32 MiB. A
// link of 4 Mbit/s transfers a report of reportBytes within the time limit of a request. If a single sample
// is larger, it is sent alone.
const reportBytes = 4 << 20

// composeCounters returns a function that composes a report from the first records, and also returns the
// number of records in the report. All samples of a report are from one run of the agent, and therefore from
// one run of the router's kernel. They are also from one kind of VPP (real or simulated). Together they have
// at most reportBytes.
func composeCounters(now func() time.Time, dropped func() int64) func([]spool.Record) (any, int, error) {
	return func(records []spool.Record) (any, int, error) {
		first, err := unmarshal(records[0].Data)
		if err != nil {
			return nil, 0, err
		}
		sent := now()
		report := countersBody{
			Schema: 1, BootID: first.BootID.String(), SentMS: sent.UnixMilli(), Simulated: first.Simulated,
			Dropped: dropped(), Samples: []sampleBody{sampleOf(first.Sample)},
		}
		if first.KernelBoot != uuid.Nil {
			id := first.KernelBoot.String()
			report.KernelBootID = &id
			if first.KernelBoot == kernelBoot() {
				uptime := uptimeAt(sent)
				report.SentUptimeMS = &uptime
			}
		}
		size := 0
		if len(records) > 1 {
			size = encodedBytes(report.Samples[0])
		}
		for _, record := range records[1:] {
			next, err := unmarshal(record.Data)
			if err != nil || next.BootID != first.BootID || next.Simulated != first.Simulated {
				break // this sample is sent with the next report
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
		return reportBytes + 1 // so that the report contains no further sample
	}
	return len(data)
}

package report

import (
	"encoding/json"
	"errors"
	"fmt"
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
			report.KernelBootID = new(first.KernelBoot.String())
			if first.KernelBoot == kernelBoot() {
				report.SentUptimeMS = new(uptimeAt(sent))
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

// storedEvent is an event with the run of the agent that observed it.
type storedEvent struct {
	BootID string    `json:"boot_id"`
	Event  eventBody `json:"event"`
}

// eventRecorder compares each view of the router with the previous view, and stores the differences as
// events.
type eventRecorder struct {
	bootID uuid.UUID
	spool  *spool.Spool
	seq    int64
	last   routerView
}

// record stores the differences between the last view and v as events of the given time. If record returns an
// error, some of these events are lost. The spool counts them, and the portal notices the gap in their
// sequence numbers.
func (r *eventRecorder) record(v routerView, at time.Time) error {
	var failed []error
	for _, event := range eventsBetween(r.last, v) {
		r.seq++
		event.Seq, event.AtMS = r.seq, at.UnixMilli()
		data, err := json.Marshal(storedEvent{r.bootID.String(), event})
		if err == nil {
			err = r.spool.Append(data)
		}
		failed = append(failed, err)
	}
	r.last = r.last.next(v)
	return errors.Join(failed...)
}

// composeEvents returns a function that composes a report from the first records, and also returns the number
// of records in the report. All events of a report are from one run of the agent.
func composeEvents(now func() time.Time) func([]spool.Record) (any, int, error) {
	return func(records []spool.Record) (any, int, error) {
		report := eventsBody{Schema: 1, SentMS: now().UnixMilli()}
		for i, record := range records {
			var s storedEvent
			err := json.Unmarshal(record.Data, &s)
			if i == 0 {
				if err != nil {
					return nil, 0, fmt.Errorf("report: %w", err)
				}
				report.BootID = s.BootID
			}
			if err != nil || s.BootID != report.BootID {
				break // this event is sent with the next report
			}
			report.Events = append(report.Events, s.Event)
		}
		return report, len(report.Events), nil
	}
}

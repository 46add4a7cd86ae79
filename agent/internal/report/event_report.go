package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"longline.dev/agent/internal/spool"
)

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

package report

import (
	"context"
	"encoding/json"
	"testing"
	"time"
)

// answering responds to each observed report with the next of these texts.
type answering struct {
	texts    []string
	answered chan struct{}
}

func (p *answering) Post(_ context.Context, _ string, _, answer any) error {
	text := p.texts[0]
	p.texts = p.texts[1:]
	defer func() { p.answered <- struct{}{} }()
	return json.Unmarshal([]byte(text), answer)
}

func TestMaintenanceIsThatOfThePortalsRecentResponse(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	for name, c := range map[string]struct {
		answer string
		later  time.Duration
		on     bool
		known  bool
	}{
		"begun":                    {`{"maintenance": true}`, 0, true, true},
		"ended":                    {`{"maintenance": false}`, 0, false, true},
		"an earlier portal":        {`{}`, 0, false, false},
		"received some time ago":   {`{"maintenance": true}`, 40 * time.Second, true, true},
		"received a long time ago": {`{"maintenance": true}`, 41 * time.Second, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			at := now
			portal := &answering{texts: []string{c.answer}, answered: make(chan struct{}, 1)}
			r := &Reporter{client: portal, interval: 10 * time.Second, log: quiet, now: func() time.Time { return at }, observed: make(chan observedBody, 1)}
			if on, known := r.Maintenance(); on || known {
				t.Error("known before any request")
			}
			ctx, cancel := context.WithCancel(t.Context())
			sent := make(chan struct{})
			go func() { defer close(sent); r.sendObserved(ctx) }()
			r.observed <- observedBody{}
			<-portal.answered
			for r.observedTaken.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
			<-sent
			at = now.Add(c.later)
			if on, known := r.Maintenance(); on != c.on || known != c.known {
				t.Errorf("on %v, known %v", on, known)
			}
		})
	}
}

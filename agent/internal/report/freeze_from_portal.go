package report

import (
	"encoding/json"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/freeze"
)

// wantedFreeze is the freeze that the portal's response requests.
type wantedFreeze struct {
	ID      string `json:"id"`
	Reason  string `json:"reason"`
	UntilMS int64  `json:"until_ms"`
}

func freezeOf(status converge.Status, now time.Time) *freeze.Shown {
	shown := status.Freeze.Shown(now)
	if shown != nil {
		shown.Reason = printable(shown.Reason)
	}
	return shown
}

// applyFreeze passes the portal's requested freeze to the engine. If requested is nil, the portal does not
// support freezes, and applyFreeze does nothing.
func (r *Reporter) applyFreeze(requested json.RawMessage) {
	if requested == nil {
		return
	}
	var wanted *wantedFreeze
	if err := json.Unmarshal(requested, &wanted); err != nil {
		r.log.Warn("the freeze in the portal's response cannot be decoded", "error", err)
		return
	}
	if wanted == nil {
		wanted = &wantedFreeze{}
	}
	r.engine.PortalFreezes(wanted.ID, wanted.Reason, time.UnixMilli(wanted.UntilMS))
}

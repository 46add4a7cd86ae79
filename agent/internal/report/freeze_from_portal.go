package report

import (
	"encoding/json"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/freeze"
)

// wantedFreeze is what the portal's answer asks for.
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

// hearFreeze tells the engine what the portal wants. A portal that says nothing of it does not know freezes.
func (r *Reporter) hearFreeze(told json.RawMessage) {
	if told == nil {
		return
	}
	var wanted *wantedFreeze
	if err := json.Unmarshal(told, &wanted); err != nil {
		r.log.Warn("the portal says of a freeze what cannot be read", "error", err)
		return
	}
	if wanted == nil {
		wanted = &wantedFreeze{}
	}
	r.engine.PortalFreezes(wanted.ID, wanted.Reason, time.UnixMilli(wanted.UntilMS))
}

package plan

import (
	"fmt"

	"longline.dev/agent/internal/observe"
)

// Reason says why an end is not as intended. The values of Status and Code are described in
// docs/reference/agent-api.md.
type Reason struct {
	Status     string
	Code       string
	Message    string
	Object     string // "" if there is none
	Retval     int32  // 0 if no request was sent to VPP
	VPPMessage string
	// Drift is a setting of another user's object that an operator has to correct, or nil if there is no such
	// setting.
	Drift *Drift
}

func pending(code, object, format string, args ...any) *Reason {
	return &Reason{Status: "pending", Code: code, Object: object, Message: fmt.Sprintf(format, args...)}
}

func conflict(code, object, format string, args ...any) *Reason {
	return &Reason{Status: "conflict", Code: code, Object: object, Message: fmt.Sprintf(format, args...)}
}

// Describe returns the name and the index of an interface, for messages.
func Describe(i *observe.Interface) string {
	return fmt.Sprintf("%s (sw_if_index %d)", i.Name, i.Index)
}

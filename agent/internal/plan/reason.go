package plan

import (
	"fmt"

	"longline.dev/agent/internal/observe"
)

// Reason says why an end is not as wanted. Status and Code are those of docs/reference/agent-api.md.
type Reason struct {
	Status     string
	Code       string
	Message    string
	Object     string // "" when there is none
	Retval     int32  // 0 when VPP was not asked
	VPPMessage string
	// Drift is what an operator has to put right of something that is theirs, nil for nothing that has a name.
	Drift *Drift
}

func pending(code, object, format string, args ...any) *Reason {
	return &Reason{Status: "pending", Code: code, Object: object, Message: fmt.Sprintf(format, args...)}
}

func conflict(code, object, format string, args ...any) *Reason {
	return &Reason{Status: "conflict", Code: code, Object: object, Message: fmt.Sprintf(format, args...)}
}

// Describe names an interface the way reasons do.
func Describe(i *observe.Interface) string {
	return fmt.Sprintf("%s (sw_if_index %d)", i.Name, i.Index)
}

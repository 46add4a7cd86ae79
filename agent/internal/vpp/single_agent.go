package vpp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"longline.dev/agent/internal/durable"
)

// AgentName is as what VPP lists the agent of a router.
func AgentName(router string) string { return fmt.Sprintf("longline/%.50s", router) }

// OtherAgentError says that another agent works with this VPP. Two with different intents would undo each
// other's work for ever.
type OtherAgentError struct{ Folder string }

func (e *OtherAgentError) Error() string {
	return fmt.Sprintf("another agent works with this VPP: it has locked %s; one of the two has to be stopped", e.Folder)
}

// lockForOneAgent makes a VPP the caller's until the result is closed or the process ends, however it ends. What is
// locked is the folder of its API socket: agents in other containers see that too, and nobody has to be able to write
// there. VPP's own list of clients is no proof of life (dead_clients.go).
func lockForOneAgent(socket string) (*os.File, error) {
	folder := filepath.Dir(socket)
	lock, err := durable.Lock(folder)
	switch {
	case errors.Is(err, durable.ErrLocked):
		return nil, &OtherAgentError{folder}
	case err != nil:
		return nil, fmt.Errorf("the folder of VPP's API socket: %w", err)
	}
	return lock, nil
}

package vpp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"longline.dev/agent/internal/durable"
)

// AgentName returns the client name of a router's agent in VPP's list.
func AgentName(router string) string { return fmt.Sprintf("longline/%.50s", router) }

// OtherAgentError says that another agent works with this VPP. Two agents with different intents would undo
// each other's work indefinitely.
type OtherAgentError struct{ Folder string }

func (e *OtherAgentError) Error() string {
	return fmt.Sprintf("another agent works with this VPP: it has locked %s; one of the two has to be stopped", e.Folder)
}

// lockForOneAgent locks a VPP for the caller until the result is closed or the process ends in any way. It
// locks the folder of the API socket for two reasons: agents in other containers detect this lock too, and
// the lock needs no write permission. VPP's own list of clients is not suitable, because it may contain
// clients that have disconnected (dead_clients.go). It returns *OtherAgentError if another agent has the
// lock.
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

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
// locks the folder of the API socket: agents in other containers detect that lock too, and it needs no
// write permission. VPP's own list of clients may contain ended ones (dead_clients.go).
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

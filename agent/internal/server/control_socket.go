package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ListenControl opens the control socket, which only the agent's user and root may use. It replaces a socket
// that an earlier agent left behind. The caller must have locked the state folder. This lock shows that the
// earlier agent has ended.
//
// ListenControl changes the process's umask for a short time. Call it before other goroutines create files.
func ListenControl(ctx context.Context, path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("control socket: %w", err)
		}
	}
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return listener, nil
}

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ListenControl opens the control socket, which only this user and root may use. A socket that an earlier
// agent left behind is replaced; the caller holds the lock of the state folder, so that agent is gone.
//
// It changes the process's umask for a moment: call it before other goroutines make files.
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

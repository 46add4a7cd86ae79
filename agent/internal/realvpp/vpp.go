package realvpp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// readyWithin is long for a machine under load; a VPP is ready within a second or two.
const readyWithin = 60 * time.Second

// ReplyTimeout is how long tests wait for a reply of VPP. It is long for a machine under load, on which a VPP may get no processor for
// seconds. The agent's own timeout is part of its configuration.
const ReplyTimeout = 60 * time.Second

// Options of a private VPP.
type Options struct {
	// Plugins are the only ones loaded, by their names without "_plugin.so": "vxlan". None
	// means all but DPDK.
	Plugins []string
	// StatsSegment is its size, "32M"; "" means enough for tens of thousands of interfaces.
	StatsSegment string
	// Workers is how many threads besides the main one forward frames, 0 for none.
	Workers int
	// Group, by number, may use the sockets too; 0: whoever may already.
	Group int
}

// VPP is a private, running VPP.
type VPP struct {
	install Install
	folder  string
	prefix  string
	process *exec.Cmd
	exited  chan struct{}
}

// Start runs a VPP in a folder of its own and returns once it answers on its API socket.
func Start(ctx context.Context, install Install, options Options) (*VPP, error) {
	folder, err := os.MkdirTemp("", "realvpp")
	if err != nil {
		return nil, err
	}
	v := &VPP{install: install, folder: folder, prefix: filepath.Base(folder)}
	config := startup(install, folder, v.prefix, options)
	if err := os.WriteFile(v.path("startup.conf"), []byte(config), 0o600); err != nil {
		os.RemoveAll(folder)
		return nil, err
	}
	if options.Group != 0 {
		// VPP opens its sockets to the group, and somebody has to open their folder, as VPP does with one it makes.
		if err := os.Chmod(folder, 0o755); err != nil {
			os.RemoveAll(folder)
			return nil, err
		}
	}
	if err := v.run(ctx); err != nil {
		v.Stop()
		return nil, err
	}
	return v, nil
}

// APISocket is the path of the binary API socket.
func (v *VPP) APISocket() string { return v.path("api.sock") }

// StatsSocket is the path of the stats segment socket.
func (v *VPP) StatsSocket() string { return v.path("stats.sock") }

// CLISocket is the path of the CLI's socket.
func (v *VPP) CLISocket() string { return v.path("cli.sock") }

// PID is that of the VPP running now.
func (v *VPP) PID() int { return v.process.Process.Pid }

// misjudged is printed again and again by a VPP that took its processor's clock to be thousands of times slower than it is. It
// measures that for 1 ms at its start, and is wrong when it loses the processor in between (estimate_clock_frequency in
// vppinfra/time.c): on a busy machine, now and then. By its own time such a VPP hardly ever gets to its sockets. One that took the
// clock to be twice as fast or more says nothing: clockRight asks it.
const misjudged = "Rejecting large frequency change"

// starts is how many times a VPP that misjudges its clock is started before Start gives up.
const starts = 3

func (v *VPP) path(name string) string { return filepath.Join(v.folder, name) }

func (v *VPP) run(ctx context.Context) error {
	for n := 1; ; n++ {
		err := v.runOnce(ctx)
		if err == nil || n == starts || !strings.Contains(err.Error(), misjudged) {
			return err
		}
		v.end(syscall.SIGKILL)
		if err := os.Remove(v.path("output")); err != nil {
			return err
		}
	}
}

func (v *VPP) runOnce(ctx context.Context) error {
	output, err := os.OpenFile(v.path("output"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	// A crash leaves its sockets behind: gone, they tell when the new VPP is there.
	os.Remove(v.APISocket())
	os.Remove(v.StatsSocket())
	v.process = exec.Command(v.install.Binary, "-c", v.path("startup.conf"))
	v.process.Stdout, v.process.Stderr = output, output
	v.process.Env = os.Environ()
	if v.install.Libraries != "" {
		v.process.Env = append(v.process.Env, "LD_LIBRARY_PATH="+v.install.Libraries)
	}
	v.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := v.process.Start(); err != nil {
		return err
	}
	v.exited = make(chan struct{})
	go func(process *exec.Cmd, exited chan struct{}) {
		process.Wait()
		close(exited)
	}(v.process, v.exited)
	return v.awaitReady(ctx)
}

// awaitReady waits for both sockets, and for an answer on the first; and has VPP's clock judged.
func (v *VPP) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		_, missing := os.Stat(v.StatsSocket())
		err := errors.Join(missing, v.answers())
		if err == nil {
			return v.clockRight()
		}
		if strings.Contains(v.said(), misjudged) {
			return fmt.Errorf("vpp is not ready: %w: %s", err, v.said())
		}
		select {
		case <-v.exited:
			return fmt.Errorf("vpp ended while starting: %s", v.said())
		case <-ctx.Done():
			return fmt.Errorf("vpp is not ready: %w: %s", err, v.said())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// said is what VPP printed, for an error message.
func (v *VPP) said() string {
	output, _ := os.ReadFile(v.path("output"))
	return string(output)
}

// Restart kills VPP without notice and starts it anew on the same sockets.
func (v *VPP) Restart(ctx context.Context) error {
	v.end(syscall.SIGKILL)
	return v.run(ctx)
}

// Stop ends VPP and removes what it left on the machine.
func (v *VPP) Stop() {
	if v.exited != nil {
		v.end(syscall.SIGTERM)
	}
	for _, segment := range []string{"global_vm", "vpe-api"} {
		os.Remove(filepath.Join("/dev/shm", v.prefix+"-"+segment))
	}
	os.RemoveAll(v.folder)
}

func (v *VPP) end(signal syscall.Signal) {
	v.process.Process.Signal(signal)
	select {
	case <-v.exited:
	case <-time.After(5 * time.Second):
		v.process.Process.Kill()
		<-v.exited
	}
}

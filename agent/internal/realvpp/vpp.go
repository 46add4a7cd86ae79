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

// readyWithin allows for a machine under load. Normally a VPP is ready within one or two seconds.
const readyWithin = 60 * time.Second

// answerWithin limits one attempt to reach a VPP that is starting. A VPP with a wrong clock accepts a
// connection and hardly ever replies. Only its output then shows the error.
const answerWithin = 10 * time.Second

// ReplyTimeout is how long tests wait for a reply of a real VPP. It allows for a machine under load, where a
// VPP may get no CPU time for seconds. The agent's own timeout is part of its configuration.
const ReplyTimeout = 60 * time.Second

// Options configure a private VPP.
type Options struct {
	// Plugins lists the only plugins to load, by their names without "_plugin.so", such as "vxlan". An
	// empty list loads all plugins except DPDK.
	Plugins []string
	// StatsSegment is the size of the segment, such as "32M". "" gives enough for tens of thousands of
	// interfaces.
	StatsSegment string
	// Workers is the number of forwarding threads in addition to the main thread.
	Workers int
	// Group is the number of a group that may use the sockets. 0 leaves the permissions unchanged.
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

// Start runs a VPP in its own folder and returns when it replies on its API socket.
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
		// VPP opens its sockets to the group. The folder must be opened here; VPP does this only for a
		// folder that it creates.
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

// APISocket returns the path of the binary API's socket.
func (v *VPP) APISocket() string { return v.path("api.sock") }

// StatsSocket returns the path of the stats segment's socket.
func (v *VPP) StatsSocket() string { return v.path("stats.sock") }

// CLISocket returns the path of the CLI's socket.
func (v *VPP) CLISocket() string { return v.path("cli.sock") }

// PID returns the process number of the running VPP.
func (v *VPP) PID() int { return v.process.Process.Pid }

// misjudged is printed repeatedly by a VPP that estimates its processor's clock thousands of times too
// slow. VPP measures the clock for 1 ms at its start. The result is wrong if VPP loses the processor during
// this time (estimate_clock_frequency in vppinfra/time.c), which sometimes happens on a busy machine. Such a
// VPP hardly ever serves its sockets. A VPP that estimates the clock twice as fast or more prints nothing;
// clockRight detects it.
const misjudged = "Rejecting large frequency change"

// starts is the maximum number of times that Start starts a VPP whose clock is wrong.
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
	// A crashed VPP leaves its sockets. After they are removed, the existence of a socket shows that the new
	// VPP has created it.
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

// awaitReady waits for the API socket, the stats socket and a reply on the API socket. Then it checks VPP's
// clock.
func (v *VPP) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		_, missing := os.Stat(v.StatsSocket())
		_, refused := v.cli("show version", answerWithin)
		err := errors.Join(missing, refused)
		if err == nil {
			return v.clockRight()
		}
		if strings.Contains(v.printed(), misjudged) {
			return fmt.Errorf("vpp is not ready: %w: %s", err, v.printed())
		}
		select {
		case <-v.exited:
			return fmt.Errorf("vpp ended while starting: %s", v.printed())
		case <-ctx.Done():
			return fmt.Errorf("vpp is not ready: %w: %s", err, v.printed())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (v *VPP) printed() string {
	output, _ := os.ReadFile(v.path("output"))
	return string(output)
}

// Restart kills VPP with SIGKILL and starts it again on the same sockets.
func (v *VPP) Restart(ctx context.Context) error {
	v.end(syscall.SIGKILL)
	return v.run(ctx)
}

// Stop ends VPP and removes its files and shared memory from the machine.
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

package report

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// kernelBoot returns the ID of the current run of the router's kernel.
var kernelBoot = sync.OnceValue(readKernelBoot)

// readKernelBoot reads the ID from the environment, because the systemd unit hides the kernel's file, or from the
// file. If both fail, it returns uuid.Nil, and the portal uses the wall-clock times of the samples.
func readKernelBoot() uuid.UUID {
	text := os.Getenv("LONGLINE_KERNEL_BOOT_ID")
	if text == "" {
		data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
		text = strings.TrimSpace(string(data))
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil
	}
	return id
}

// uptimeAt returns the router's uptime at the time at (CLOCK_BOOTTIME in ms). Nobody can set this clock, and it
// continues while the machine is suspended.
func uptimeAt(at time.Time) int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // every kernel since 2.6.39 has this clock
	return (time.Duration(now.Nano()) - time.Since(at)).Milliseconds()
}

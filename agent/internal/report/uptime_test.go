package report

import (
	"testing"

	"github.com/google/uuid"
)

func TestTheKernelsBootIDComesFromSystemdOrFromTheKernel(t *testing.T) {
	want := uuid.MustParse("6a9f10d3-4c5a-4f53-8d2d-61b60d3e6b6a")
	t.Setenv("LONGLINE_KERNEL_BOOT_ID", "6a9f10d34c5a4f538d2d61b60d3e6b6a") // the form of systemd's %b
	if got := readKernelBoot(); got != want {
		t.Errorf("from systemd: %s, want %s", got, want)
	}
	t.Setenv("LONGLINE_KERNEL_BOOT_ID", "")
	if got := readKernelBoot(); got == uuid.Nil || got == want {
		t.Errorf("from the kernel: %s", got)
	}
	t.Setenv("LONGLINE_KERNEL_BOOT_ID", "unreadable")
	if got := readKernelBoot(); got != uuid.Nil {
		t.Errorf("from an unreadable text: %s", got)
	}
}

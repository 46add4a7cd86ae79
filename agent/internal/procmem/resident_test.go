package procmem

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

const size = 32 << 20

func resident(t *testing.T) Resident {
	t.Helper()
	now, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func TestMemoryMappedFromAnotherProcessIsShared(t *testing.T) {
	file, err := os.Create(filepath.Join("/dev/shm", filepath.Base(t.TempDir())+"-longline-test"))
	if err != nil {
		t.Skip("no shared memory here: ", err)
	}
	t.Cleanup(func() { _ = file.Close(); _ = os.Remove(file.Name()) })
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	before := resident(t)
	mapped, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < size; at += 4096 {
		mapped[at] = 1
	}
	after := resident(t)
	if grown := after.Shared - before.Shared; grown < size {
		t.Errorf("%d bytes more are shared", grown)
	}
	if grown := after.Own - before.Own; grown > size/2 {
		t.Errorf("%d bytes more are its own", grown)
	}
	if err := syscall.Munmap(mapped); err != nil {
		t.Fatal(err)
	}
}

func TestAllocatedMemoryIsOwn(t *testing.T) {
	before := resident(t)
	allocated := make([]byte, size)
	for at := 0; at < len(allocated); at += 4096 {
		allocated[at] = 1
	}
	if grown := resident(t).Own - before.Own; grown < size/2 {
		t.Errorf("%d bytes more", grown)
	}
	if allocated[0] != 1 {
		t.Error("the memory must be there until here")
	}
}

func TestAnEndedProcessIsAnError(t *testing.T) {
	if _, err := Of(1 << 30); err == nil {
		t.Error("no error")
	}
}

package durable_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/durable/durabletest"
)

func TestOnAFullDiskReplaceUsesTheReserve(t *testing.T) {
	folder := durabletest.SmallDisk(t, "512k")
	path, before := filepath.Join(folder, "intent.json"), bytes.Repeat([]byte("1"), 50_000)
	if err := durable.Replace(path, before); err != nil {
		t.Fatal(err)
	}
	if err := durable.Reserve(folder, 200_000); err != nil {
		t.Fatal(err)
	}
	free := durabletest.Fill(t, folder)
	if err := os.WriteFile(filepath.Join(folder, "other"), []byte("more"), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	for n := range 10 { // replacing a file by one of the same size uses up no space
		data := bytes.Repeat([]byte{byte('a' + n)}, 50_000)
		if err := durable.Replace(path, data); err != nil {
			t.Fatalf("write %d: %v", n, err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("write %d is not there: %v", n, err)
		}
	}
	larger := bytes.Repeat([]byte("z"), 150_000)
	if err := durable.Replace(path, larger); err != nil {
		t.Errorf("one that is larger: %v", err)
	}
	if err := durable.Replace(path, bytes.Repeat(larger, 2)); !durable.IsFull(err) {
		t.Errorf("more than there is: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, larger) {
		t.Errorf("what could not be replaced is not what it was: %v", err)
	}
	free()
	if err := durable.Reserve(folder, 200_000); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if info, err := os.Stat(filepath.Join(folder, "reserve")); err != nil || info.Size() < 200_000 {
		t.Errorf("the reserve is not whole again: %v, %v", info, err)
	}
}

package spool

import (
	"fmt"
	"testing"

	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/durable/durabletest"
)

func TestTakenRecordsAreNotReturnedAgainOnAFullDisk(t *testing.T) {
	folder := durabletest.SmallDisk(t, "256k")
	add(t, open(t, folder, room), "one", "two", "three")
	s := open(t, folder, room)
	free := durabletest.Fill(t, folder)
	for left := 3; left > 0; left-- {
		records := oldest(t, s, 1)
		if len(records) != 1 {
			t.Fatalf("%d records, want one of %d", len(records), left)
		}
		_ = s.Take(records, false) // it may report that the disk is full
	}
	mustContain(t, s)
	free()
	add(t, s, "four")
	mustContain(t, s, "four")
	take(t, s, 1, false)
	if again := open(t, folder, room); again.Waiting() != 0 || again.Dropped() != 0 {
		t.Errorf("after a restart %d wait and %d were dropped", again.Waiting(), again.Dropped())
	}
}

func TestAppendDropsAndCountsTheOldestOnAFullDisk(t *testing.T) {
	const size, n = 2000, 300
	s := open(t, durabletest.SmallDisk(t, "256k"), room)
	for i := range n {
		add(t, s, fmt.Sprintf("%0*d", size, i))
	}
	records := oldest(t, s, n)
	if int64(len(records))+s.Dropped() != n || s.Waiting() != int64(len(records)) || len(records) < 60 {
		t.Errorf("%d are there, %d wait and %d were dropped of %d", len(records), s.Waiting(), s.Dropped(), n)
	}
	for i, r := range records {
		if want := fmt.Sprintf("%0*d", size, n-len(records)+i); string(r.Data) != want {
			t.Fatalf("record %d is not %d", i, n-len(records)+i)
		}
	}
}

func TestAppendUsesTheSpaceOfTakenRecordsOnAFullDisk(t *testing.T) {
	const size = 3000
	folder := durabletest.SmallDisk(t, "256k")
	s := open(t, folder, room)
	for i := range 20 {
		add(t, s, fmt.Sprintf("%0*d", size, i))
	}
	take(t, s, 19, false)
	durabletest.Fill(t, folder)
	_ = s.Take(oldest(t, s, 1), false) // it may report that the disk is full
	for i := range 40 {                // more than a segment
		add(t, s, fmt.Sprintf("%0*d", size, i))
		_ = s.Take(oldest(t, s, 1), false)
	}
	if s.Dropped() != 0 || s.Waiting() != 0 {
		t.Errorf("%d wait and %d were dropped", s.Waiting(), s.Dropped())
	}
}

func TestAppendDropsRecordsToGiveTheReserveItsSpace(t *testing.T) {
	const size, reserve, n = 2000, 64 << 10, 300
	folder := durabletest.SmallDisk(t, "256k")
	s := open(t, folder, room)
	for i := range n { // until the disk is full
		add(t, s, fmt.Sprintf("%0*d", size, i))
	}
	if err := durable.Reserve(folder, reserve); !durable.IsFull(err) {
		t.Fatalf("there is room for the reserve: %v", err)
	}
	s.First = func() error { return durable.Reserve(folder, reserve) }
	add(t, s, "and one more")
	if err := durable.Reserve(folder, reserve); err != nil {
		t.Errorf("it has no space yet: %v", err)
	}
	if records := oldest(t, s, n); len(records) < 20 || string(records[len(records)-1].Data) != "and one more" {
		t.Errorf("%d records are left", len(records))
	}
}

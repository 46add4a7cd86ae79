package report

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"longline.dev/agent/internal/durable/durabletest"
)

// await polls until a condition is true.
func await(t *testing.T, condition string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", condition)
		}
	}
}

func TestOnAFullDiskEverySampleIsSentOnceAndSamplingContinues(t *testing.T) {
	folder := durabletest.SmallDisk(t, "256k")
	earlier := openSpool(t, folder, 1<<20)
	keep(t, earlier, bootID, false, upTo(200)...)
	if err := earlier.Close(); err != nil {
		t.Fatal(err)
	}
	s := openSpool(t, folder, 1<<20) // a new run of the agent
	free := durabletest.Fill(t, folder)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	portal := &stubPortal{}
	portal.answer = func() error {
		if len(portal.requests) > 500 {
			cancel()
			return errors.New("flooded")
		}
		return nil
	}
	done := make(chan struct{})
	go func() { forwarding(s, portal).run(ctx); close(done) }()
	got := func(n int64) func() bool {
		return func() bool { return ctx.Err() != nil || slices.Equal(portal.got(bootID), upTo(n)) }
	}
	await(t, "all samples are sent", got(200))
	time.Sleep(200 * time.Millisecond)            // time for many requests, if there were any
	keep(t, s, bootID, false, upTo(202)[200:]...) // although the disk is full
	await(t, "fresh samples on a full disk", got(202))
	free()
	keep(t, s, bootID, false, upTo(205)[202:]...)
	await(t, "fresh samples on a disk that has room again", got(205))
	cancel()
	<-done
	if requests := len(portal.requestTimes()); requests > 20+2+3 || !slices.Equal(portal.got(bootID), upTo(205)) {
		t.Errorf("in %d reports the portal got %v", requests, portal.got(bootID))
	}
	if again := openSpool(t, folder, 1<<20); s.Dropped() != 0 || again.Waiting() != 0 || again.Dropped() != 0 {
		t.Errorf("%d were dropped; after a restart %d wait and %d were dropped", s.Dropped(), again.Waiting(), again.Dropped())
	}
}

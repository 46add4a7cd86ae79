package vpp

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"longline.dev/agent/internal/vppsim"
)

func TestASessionWithoutABootTimeEndsWhenOneCanBeRead(t *testing.T) {
	sim, err := vppsim.Start(t.Context(), vppsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	var readable atomic.Bool
	dialer := Dialer{Socket: sim.APISocket(), Timeout: testTimeout, BootMS: func(context.Context) (int64, error) {
		if !readable.Load() {
			return 0, errors.New("no such socket yet")
		}
		return 1000, nil
	}}
	session, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	if session.Info().BootMS != 0 || session.Err() != nil {
		t.Fatalf("got %+v, %v", session.Info(), session.Err())
	}
	readable.Store(true)
	mustEnd(t, session)
	if !errors.Is(session.Err(), errStatsAppeared) {
		t.Errorf("it ended with %v", session.Err())
	}
	again, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	if again.Info().BootMS != 1000 {
		t.Errorf("got %+v", again.Info())
	}
}

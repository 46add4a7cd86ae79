package vppcontract

import (
	"context"
	"os"
	"testing"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/memclnt"
)

func wantEvents(enable uint32) *interfaces.WantInterfaceEvents {
	return &interfaces.WantInterfaceEvents{EnableDisable: enable, PID: uint32(os.Getpid())}
}

// watch subscribes to interface events.
func (d *device) watch() api.Watcher {
	d.Helper()
	watcher, err := d.conn.WatchEvent(context.Background(), &interfaces.SwInterfaceEvent{})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(watcher.Close)
	do(d, wantEvents(1), &interfaces.WantInterfaceEventsReply{})
	return watcher
}

// expectEvent waits for an event of that interface that matches; others may come before.
func (d *device) expectEvent(watcher api.Watcher, of index, matches func(*interfaces.SwInterfaceEvent) bool) {
	d.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	for {
		select {
		case m := <-watcher.Events():
			if event := m.(*interfaces.SwInterfaceEvent); event.SwIfIndex == of && matches(event) {
				return
			}
		case <-ctx.Done():
			d.Fatal("no such event came")
		}
	}
}

// TestAnEventOfACreationComesBeforeTheReplyToTheSecondRequestAfterIt: because of this order, the agent's
// last snapshot and the events since then cover all interfaces.
func TestAnEventOfACreationComesBeforeTheReplyToTheSecondRequestAfterIt(t *testing.T) {
	both(t, func(d *device) {
		events := d.watch()
		for range 20 {
			port := d.port()
			for range 2 {
				do(d, &memclnt.ControlPing{}, &memclnt.ControlPingReply{})
			}
			d.expectEvent(events, port, func(e *interfaces.SwInterfaceEvent) bool { return !e.Deleted })
		}
	})
}

func TestEventsReportAdminStateAndDeletion(t *testing.T) {
	both(t, func(d *device) {
		port := d.port()
		sub := d.subif(port, 1)
		events := d.watch()
		d.setFlags(port, up)
		d.expectEvent(events, port, func(e *interfaces.SwInterfaceEvent) bool { return e.Flags == up|linkUp && !e.Deleted })
		d.setFlags(port, 0)
		d.expectEvent(events, port, func(e *interfaces.SwInterfaceEvent) bool { return e.Flags&up == 0 && !e.Deleted })
		d.deleteSubif(sub)
		d.expectEvent(events, sub, func(e *interfaces.SwInterfaceEvent) bool { return e.Deleted })
	})
}

func TestASecondRegistrationForEventsIsRefused(t *testing.T) {
	both(t, func(d *device) {
		do(d, wantEvents(1), &interfaces.WantInterfaceEventsReply{})
		refused(d, wantEvents(1), &interfaces.WantInterfaceEventsReply{}, -31)
		do(d, wantEvents(0), &interfaces.WantInterfaceEventsReply{})
		refused(d, wantEvents(0), &interfaces.WantInterfaceEventsReply{}, -31)
	})
}

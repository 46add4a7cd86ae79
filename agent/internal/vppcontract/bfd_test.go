package vppcontract

import (
	"context"
	"testing"

	"go.fd.io/govpp/binapi/bfd"
)

func (d *device) enableMultihop() {
	d.Helper()
	d.needs(&bfd.BfdUDPEnableMultihop{})
	do(d, &bfd.BfdUDPEnableMultihop{}, &bfd.BfdUDPEnableMultihopReply{})
}

func addBFD(of index, local, peer string) *bfd.BfdUDPAdd {
	return &bfd.BfdUDPAdd{
		SwIfIndex: of, LocalAddr: address(local), PeerAddr: address(peer), DesiredMinTx: 300_000, RequiredMinRx: 300_000, DetectMult: 3,
	}
}

func modBFD(local, peer string) *bfd.BfdUDPMod {
	return &bfd.BfdUDPMod{
		SwIfIndex: anyIndex, LocalAddr: address(local), PeerAddr: address(peer), DesiredMinTx: 100_000, RequiredMinRx: 200_000, DetectMult: 5,
	}
}

func delBFD(local, peer string) *bfd.BfdUDPDel {
	return &bfd.BfdUDPDel{SwIfIndex: anyIndex, LocalAddr: address(local), PeerAddr: address(peer)}
}

func (d *device) bfdSessions() []*bfd.BfdUDPSessionDetails {
	d.Helper()
	return dump[*bfd.BfdUDPSessionDetails](d, &bfd.BfdUDPSessionDump{})
}

func TestMultihopSessionsAreRefusedUntilMultihopIsEnabled(t *testing.T) {
	both(t, func(d *device) {
		d.needs(&bfd.BfdUDPEnableMultihop{})
		refused(d, addBFD(anyIndex, "10.255.0.1", "10.255.0.2"), &bfd.BfdUDPAddReply{}, -2)
		refused(d, modBFD("10.255.0.1", "10.255.0.2"), &bfd.BfdUDPModReply{}, -2)
		refused(d, delBFD("10.255.0.1", "10.255.0.2"), &bfd.BfdUDPDelReply{}, -2)
		d.enableMultihop()
		d.enableMultihop() // changes nothing
		do(d, addBFD(anyIndex, "10.255.0.1", "10.255.0.2"), &bfd.BfdUDPAddReply{})
	})
}

func TestABFDSessionIsCreatedOnceForAPathOfEitherFamily(t *testing.T) {
	both(t, func(d *device) {
		d.enableMultihop()
		do(d, addBFD(anyIndex, "10.255.0.1", "10.255.0.2"), &bfd.BfdUDPAddReply{})
		do(d, addBFD(anyIndex, "fd00:255::1", "fd00:255::2"), &bfd.BfdUDPAddReply{})
		refused(d, addBFD(anyIndex, "10.255.0.1", "10.255.0.2"), &bfd.BfdUDPAddReply{}, -101)
		if got := d.bfdSessions(); len(got) != 2 {
			d.Fatalf("%d sessions", len(got))
		}
		for _, s := range d.bfdSessions() {
			if s.SwIfIndex != anyIndex || s.State != bfd.BFD_STATE_API_DOWN || s.DesiredMinTx != 300_000 || s.RequiredMinRx != 300_000 ||
				s.DetectMult != 3 {
				d.Errorf("%+v", s)
			}
		}
	})
}

func TestSingleHopAndMultihopBFDSessionsOfOnePathCoexist(t *testing.T) {
	both(t, func(d *device) {
		port := d.portUp()
		d.address(port, "10.255.0.1/32")
		d.enableMultihop()
		do(d, addBFD(port, "10.255.0.1", "10.255.0.2"), &bfd.BfdUDPAddReply{})
		do(d, addBFD(anyIndex, "10.255.0.1", "10.255.0.2"), &bfd.BfdUDPAddReply{})
		do(d, delBFD("10.255.0.1", "10.255.0.2"), &bfd.BfdUDPDelReply{})
		if got := d.bfdSessions(); len(got) != 1 || got[0].SwIfIndex != port {
			d.Errorf("%+v", got)
		}
		refused(d, addBFD(999, "10.255.0.1", "10.255.0.2"), &bfd.BfdUDPAddReply{}, -2)
	})
}

func TestInvalidBFDSessionsAreRefused(t *testing.T) {
	both(t, func(d *device) {
		d.enableMultihop()
		refused(d, addBFD(anyIndex, "10.255.0.1", "fd00:255::2"), &bfd.BfdUDPAddReply{}, -73)
		noMultiplier, noInterval, noKey := addBFD(anyIndex, "10.255.0.1", "10.255.0.2"), addBFD(anyIndex, "10.255.0.1", "10.255.0.2"),
			addBFD(anyIndex, "10.255.0.1", "10.255.0.2")
		noMultiplier.DetectMult, noInterval.DesiredMinTx, noKey.IsAuthenticated = 0, 0, true
		refused(d, noMultiplier, &bfd.BfdUDPAddReply{}, -73)
		refused(d, noInterval, &bfd.BfdUDPAddReply{}, -73)
		refused(d, noKey, &bfd.BfdUDPAddReply{}, -102)
		if got := d.bfdSessions(); len(got) != 0 {
			d.Errorf("%+v", got)
		}
	})
}

func TestABFDSessionIsIdentifiedByItsAddresses(t *testing.T) {
	both(t, func(d *device) {
		d.enableMultihop()
		do(d, addBFD(anyIndex, "10.255.0.1", "10.255.0.2"), &bfd.BfdUDPAddReply{})
		do(d, modBFD("10.255.0.1", "10.255.0.2"), &bfd.BfdUDPModReply{})
		flags := &bfd.BfdUDPSessionSetFlags{SwIfIndex: anyIndex, LocalAddr: address("10.255.0.1"), PeerAddr: address("10.255.0.2")}
		do(d, flags, &bfd.BfdUDPSessionSetFlagsReply{})
		if s := d.bfdSessions()[0]; s.DesiredMinTx != 100_000 || s.RequiredMinRx != 200_000 || s.DetectMult != 5 ||
			s.State != bfd.BFD_STATE_API_ADMIN_DOWN {
			d.Errorf("%+v", s)
		}
		flags.Flags = up
		do(d, flags, &bfd.BfdUDPSessionSetFlagsReply{})
		if s := d.bfdSessions()[0]; s.State != bfd.BFD_STATE_API_DOWN {
			d.Errorf("%+v", s)
		}
		do(d, delBFD("10.255.0.1", "10.255.0.2"), &bfd.BfdUDPDelReply{})
		refused(d, delBFD("10.255.0.1", "10.255.0.2"), &bfd.BfdUDPDelReply{}, -102)
		refused(d, modBFD("10.255.0.1", "10.255.0.2"), &bfd.BfdUDPModReply{}, -102)
		refused(d, flags, &bfd.BfdUDPSessionSetFlagsReply{}, -102)
	})
}

func TestBFDEventsReportStateChangesWithoutTheRegisteredPID(t *testing.T) {
	both(t, func(d *device) {
		watcher, err := d.conn.WatchEvent(context.Background(), &bfd.BfdUDPSessionEvent{})
		if err != nil {
			d.Fatal(err)
		}
		d.Cleanup(watcher.Close)
		want := func(on bool) *bfd.WantBfdEvents { return &bfd.WantBfdEvents{EnableDisable: on, PID: 7} }
		do(d, want(true), &bfd.WantBfdEventsReply{})
		refused(d, want(true), &bfd.WantBfdEventsReply{}, -31)
		d.enableMultihop()
		do(d, addBFD(anyIndex, "10.255.0.1", "10.255.0.2"), &bfd.BfdUDPAddReply{}) // no event reports the creation
		flags := &bfd.BfdUDPSessionSetFlags{SwIfIndex: anyIndex, LocalAddr: address("10.255.0.1"), PeerAddr: address("10.255.0.2")}
		do(d, flags, &bfd.BfdUDPSessionSetFlagsReply{})
		ctx, cancel := context.WithTimeout(context.Background(), answerIn)
		defer cancel()
		select {
		case m := <-watcher.Events():
			if e := m.(*bfd.BfdUDPSessionEvent); e.State != bfd.BFD_STATE_API_ADMIN_DOWN || e.SwIfIndex != anyIndex || e.PID != 0 ||
				e.LocalAddr != address("10.255.0.1") || e.PeerAddr != address("10.255.0.2") {
				d.Errorf("%+v", e)
			}
		case <-ctx.Done():
			d.Fatal("no event came")
		}
		do(d, want(false), &bfd.WantBfdEventsReply{})
		refused(d, want(false), &bfd.WantBfdEventsReply{}, -31)
	})
}

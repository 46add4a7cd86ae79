package converge

import (
	"errors"
	"net/netip"
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/vpp"
)

func roundTrip(end intent.End) *intent.RoundTrip {
	return &intent.RoundTrip{Key: end.Key, Revision: end.Revision}
}

// The far address belongs to this router. Tests of package roundtrip cover other routers.
func TestMeasureRoundTripUsesTheTunnelsAddresses(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		end.Tunnel.Remote = netip.MustParseAddr("10.255.0.77")
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		port := r.snapshot().ByName("loop0")
		r.must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: interface_types.InterfaceIndex(port.Index), IsAdd: true,
			Prefix: ip_types.AddressWithPrefix{Address: vpp.IPAddress(end.Tunnel.Remote), Len: 32}})
		observation, wrote := r.Status().ObservationNumber, r.writes()
		times, err := r.MeasureRoundTrip(t.Context(), roundTrip(end))
		if err != nil || times.Sent == 0 || times.Avg < times.Min || times.Max < times.Avg {
			t.Errorf("got %+v, %v", times, err)
		}
		simulated := r.forwards != nil // VPP does not reply to itself
		if simulated && (times.Received != times.Sent || times.Min <= 0) {
			t.Errorf("got %+v", times)
		}
		if r.Status().ObservationNumber != observation || r.writes() != wrote {
			t.Error("VPP was observed or changed")
		}
	})
}

func TestMeasureRoundTripNeedsATunnelOfTheStoredIntent(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		stored, local, bare := vxlanEnd(1, r.ports[0]), vxlanEnd(3, r.ports[1]), vxlanEnd(4, r.ports[0])
		local.Tunnel = intent.Tunnel{Encapsulation: intent.L2XC}
		itsOther := local
		itsOther.End, itsOther.Access.Interface = "z", r.ports[2]
		bare.Tunnel.Local = netip.MustParseAddr("10.255.0.99") // no interface has this address
		r.put([]intent.End{stored, local, itsOther, bare})
		another := stored
		another.Revision++
		for name, end := range map[string]intent.End{
			"unknown": vxlanEnd(2, r.ports[0]), "another revision": another, "no tunnel": local, "no such address here": bare,
		} {
			var not *NotTestingError
			if times, err := r.MeasureRoundTrip(t.Context(), roundTrip(end)); !errors.As(err, &not) {
				t.Errorf("%s: %+v, %v", name, times, err)
			}
		}
		r.Attach(nil)
		if times, err := r.MeasureRoundTrip(t.Context(), roundTrip(stored)); err == nil {
			t.Errorf("without VPP: %+v", times)
		}
	})
}

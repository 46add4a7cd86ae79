package converge

import (
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/foundlines"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/pathwatch"
	"longline.dev/agent/internal/vpp"
)

const underlayTable = 10

// endsInTheTable returns lines of the five transports that support a table other than 0.
func endsInTheTable(r *router) (ends []intent.End) {
	for _, end := range endsOfAllTransports(r) {
		if end.Tunnel.Table = underlayTable; end.Tunnel.Encapsulation != intent.GENEVE || end.Tunnel.Local.Is4() {
			ends = append(ends, end)
		}
	}
	return ends
}

// makeTable creates the table of both families, and in it loop10 with the local addresses.
func (r *router) makeTable() interface_types.InterfaceIndex {
	r.t.Helper()
	port := r.portByHand(10)
	for family, bits := range map[int]uint8{4: 32, 6: 128} {
		six := family == 6
		r.must(&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: underlayTable, IsIP6: six}})
		r.must(&interfaces.SwInterfaceSetTable{SwIfIndex: port, VrfID: underlayTable, IsIPv6: six})
		r.must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: port, IsAdd: true,
			Prefix: ip_types.AddressWithPrefix{Address: vpp.IPAddress(locals[family]), Len: bits}})
	}
	return port
}

// mustWait checks that every end waits for its local address and says this.
func (o *Outcome) mustWait(t *testing.T, says string) {
	t.Helper()
	o.mustAllBe(t, "pending")
	for _, end := range o.Ends {
		if end.Reason == nil || end.Reason.Code != "local_address_missing" || !strings.Contains(end.Reason.Message, says) {
			t.Errorf("%s: %+v, want %q", end.Key, end.Reason, says)
		}
	}
}

func TestTunnelsWaitForTheirAddressesInTheUnderlaysTable(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		ends := endsInTheTable(r)
		nowhere := ends[0]
		nowhere.Tunnel.Local = remotes[4].Next()
		r.put([]intent.End{nowhere}).mustWait(t, "no interface of this router has an address in the IPv4 table 10")
		r.put(ends).mustWait(t, "and the portal wants its tunnels in table 10") // loop0 has the address in table 0
		if tunnels := r.snapshot().Tunnels; len(tunnels) != 0 {
			t.Fatalf("made in another table: %+v", tunnels[0])
		}
		port := r.makeTable()
		r.Converge(t.Context()).mustAllBe(t, "verified")
		tunnels := r.snapshot().Tunnels
		for _, made := range tunnels {
			if made.Table != underlayTable {
				t.Errorf("%+v", made)
			}
		}
		if len(tunnels) != len(ends) {
			t.Errorf("%d tunnels", len(tunnels))
		}
		writes := r.writes()
		r.Converge(t.Context()).mustAllBe(t, "verified")
		if again := r.writes() - writes; again != 0 {
			t.Errorf("the second converge wrote %d messages", again)
		}

		unread := vxlanEnd(9, r.ports[0])
		unread.Tunnel = intent.Tunnel{Encapsulation: intent.GENEVE, Local: locals[6], Remote: remotes[6], VNI: 9, Table: underlayTable}
		if end := r.put(append(ends, unread)).of(t, unread.Key); end.Status != "failed" || end.Reason.Code != "unsupported" {
			t.Errorf("GENEVE over IPv6: %+v", end)
		}
		r.put(ends).mustAllBe(t, "verified")

		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: port})
		r.Converge(t.Context()).mustWait(t, "is down: set it up")
		r.must(&interfaces.SwInterfaceSetFlags{SwIfIndex: port, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})

		r.put(endsOfAllTransports(r)).mustAllBe(t, "verified") // in table 0 again
		for _, made := range r.snapshot().Tunnels {
			if made.Table != 0 {
				t.Errorf("%+v", made)
			}
		}
	})
}

// TestForeignTunnelInAnotherTableConflictsOnlyWithGENEVE: VPP distinguishes the others by their tables.
func TestForeignTunnelInAnotherTableConflictsOnlyWithGENEVE(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.makeTable()
		ends := endsInTheTable(r)
		for _, end := range ends[:2] {
			theirs := end.Tunnel
			theirs.Table = 0
			r.tunnelByHand(theirs)
		}
		for _, end := range r.put(ends).Ends {
			want := "verified"
			if end.Key == ends[1].Key {
				want = "conflict"
			}
			if end.Status != want {
				t.Errorf("%s is %s: %+v", end.Key, end.Status, end.Reason)
			}
		}
	})
}

func TestForeignTunnelIsFoundWithItsTable(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.makeTable()
		r.tunnelByHand(intent.Tunnel{Encapsulation: intent.VXLAN, Local: locals[4], Remote: remotes[4], VNI: 902, Table: underlayTable})
		r.put(nil)
		state, err := r.ObservedState(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := foundlines.Circuits(state.Snapshot, state.Plan)
		if len(found) != 1 || found[0].Near.Tunnel.Table != underlayTable || !found[0].Near.Tunnel.Default {
			t.Errorf("%+v", found)
		}
	})
}

// TestQuickObservationDetectsThatAnAddressWasMoved: an operator's script removes it, moves its interface
// and adds it again immediately.
func TestQuickObservationDetectsThatAnAddressWasMoved(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		end := vxlanEnd(1, r.ports[0])
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		before := r.snapshot()
		port := interface_types.InterfaceIndex(before.ByAddress(0, locals[4]).Index)
		address := ip_types.AddressWithPrefix{Address: vpp.IPAddress(locals[4]), Len: 32}
		r.must(&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: underlayTable}})
		r.must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: port, Prefix: address})
		r.must(&interfaces.SwInterfaceSetTable{SwIfIndex: port, VrfID: underlayTable})
		r.must(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: port, IsAdd: true, Prefix: address})
		now, same, err := observe.Quick(t.Context(), r.session, before, nil)
		if err != nil || !same {
			t.Fatal(same, err)
		}
		if now.ByAddress(0, locals[4]) != nil || now.ByAddress(underlayTable, locals[4]) == nil {
			t.Error("it is still in its old table")
		}
	})
}

// routeIntoTheTable makes table 0 look up the far endpoints in the underlay's table.
func (r *router) routeIntoTheTable(add bool) {
	r.t.Helper()
	for family, proto := range map[int]fib_types.FibPathNhProto{4: fib_types.FIB_API_PATH_NH_PROTO_IP4, 6: fib_types.FIB_API_PATH_NH_PROTO_IP6} {
		to := ip_types.Prefix{Address: vpp.IPAddress(remotes[family]), Len: uint8(remotes[family].BitLen())}
		r.must(&ip.IPRouteAddDel{IsAdd: add, Route: ip.IPRoute{Prefix: to, NPaths: 1, Paths: []fib_types.FibPath{{
			SwIfIndex: ^uint32(0), TableID: underlayTable, Weight: 1, Proto: proto,
		}}}})
	}
}

// TestPathInATableNeedsARouteInTableZero: VPP sends the packets of a session by table 0.
func TestPathInATableNeedsARouteInTableZero(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanWatch)
		port := r.makeTable()
		unwatched := func() {
			t.Helper()
			r.mustWatch(watched)
			for _, path := range r.paths.Paths() {
				if path.State != pathwatch.Refusal || !strings.Contains(path.Detail, "-lookup-in-table 10") {
					t.Errorf("%+v", path)
				}
			}
			if got := len(r.paths.Paths()); got != 2 {
				t.Errorf("%d paths", got)
			}
		}
		r.putWatched(watched, endsInTheTable(r)...).mustAllBe(t, "verified")
		unwatched()
		r.routeIntoTheTable(true)
		r.Converge(t.Context())
		r.mustWatch(watched, pathOf(4), pathOf(6))
		r.routeIntoTheTable(false)
		r.Converge(t.Context())
		r.mustWatch(watched, pathOf(4), pathOf(6)) // as after a failure of the underlay: neither table has a route
		for family, proto := range map[int]fib_types.FibPathNhProto{4: fib_types.FIB_API_PATH_NH_PROTO_IP4, 6: fib_types.FIB_API_PATH_NH_PROTO_IP6} {
			to := ip_types.Prefix{Address: vpp.IPAddress(remotes[family]), Len: uint8(remotes[family].BitLen())}
			r.must(&ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{TableID: underlayTable, Prefix: to, NPaths: 1, Paths: []fib_types.FibPath{{
				SwIfIndex: uint32(port), Weight: 1, Proto: proto,
			}}}})
		}
		r.Converge(t.Context())
		unwatched()
	})
}

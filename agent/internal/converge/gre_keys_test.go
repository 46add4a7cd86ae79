package converge

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/gre"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// greEnd returns VLAN n+100 of a port over GRE with that key (0 for none), between the first pair of
// addresses.
func greEnd(n int, port string, key uint32) intent.End {
	end := vxlanEnd(n, port)
	end.Tunnel.Encapsulation, end.Tunnel.VNI, end.Tunnel.GREKey = intent.GRE, 0, key
	return end
}

// greByHand creates a GRE tunnel as another client.
func (r *router) greByHand(key uint32) string {
	r.t.Helper()
	made := r.greTunnel(true, intent.Tunnel{Local: locals[4], Remote: remotes[4], GREKey: key})
	return r.snapshot().ByIndex(made).Name
}

// keysOfGRE returns the keys of all GRE tunnels, sorted; 0 means none.
func (r *router) keysOfGRE() []uint32 {
	r.t.Helper()
	var keys []uint32
	for _, t := range r.snapshot().Tunnels {
		if t.Encapsulation == intent.GRE {
			keys = append(keys, t.GREKey)
		}
	}
	slices.Sort(keys)
	return keys
}

func (r *router) mustHaveGREKeys(t *testing.T, want ...uint32) {
	t.Helper()
	if got := r.keysOfGRE(); !slices.Equal(got, want) {
		t.Errorf("GRE tunnels with the keys %v, want %v", got, want)
	}
}

func TestGRELinesWithKeysShareAPairOfAddresses(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanGREKeys)
		var ends []intent.End
		for n, key := range []uint32{0, 100, 200, 1<<32 - 1} {
			ends = append(ends, greEnd(n, r.ports[0], key))
		}
		r.put(ends).mustAllBe(t, "verified")
		r.mustHaveGREKeys(t, 0, 100, 200, 1<<32-1)
		writes := r.writes()
		r.put(ends).mustAllBe(t, "verified")
		if again := r.writes() - writes; again != 0 {
			t.Errorf("the second converge wrote %d messages", again)
		}
		for len(ends) > 0 { // each is removed alone; its deletion also names the pair of addresses of the others
			last := ends[len(ends)-1]
			ends = ends[:len(ends)-1]
			kept := r.tunnelNames(ends)
			r.put(ends, tombstone(last))
			if now := r.tunnelNames(ends); !maps.Equal(now, kept) {
				t.Errorf("without the key %d there are %v, and were %v", last.Tunnel.GREKey, now, kept)
			}
		}
		r.mustHaveGREKeys(t)
	})
}

// tunnelNames returns the names of the ends' tunnels.
func (r *router) tunnelNames(ends []intent.End) map[intent.Key]string {
	r.t.Helper()
	names := make(map[intent.Key]string)
	for _, end := range ends {
		names[end.Key] = r.tunnelOf(end.Key)
	}
	return names
}

func TestChangeOfAGREKeyRecreatesOnlyTheTunnel(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanGREKeys)
		changed, other := greEnd(1, r.ports[0], 0), greEnd(2, r.ports[0], 200)
		r.put([]intent.End{changed, other}).mustAllBe(t, "verified")
		kept := r.tunnelNames([]intent.End{other})
		for _, key := range []uint32{100, 0, 300} { // to a key, back, and to a key again
			changed.Revision++
			changed.Tunnel.GREKey = key
			session := record(r.session)
			r.Attach(session)
			r.put([]intent.End{changed, other}).mustAllBe(t, "verified")
			for index, messages := range session.touched {
				if slices.Contains(messages, "delete_subif") || slices.Contains(r.indicesOf(other.Key), index) {
					t.Errorf("interface %d got %v", index, messages)
				}
			}
			r.mustHaveGREKeys(t, slices.Sorted(slices.Values([]uint32{key, 200}))...)
		}
		if now := r.tunnelNames([]intent.End{other}); !maps.Equal(now, kept) {
			t.Errorf("the other line has %v, and had %v", now, kept)
		}
	})
}

func TestForeignGRETunnelConflictsOnlyWithItsKey(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanGREKeys)
		theirs := []string{r.greByHand(0), r.greByHand(100)}
		ends := []intent.End{greEnd(1, r.ports[0], 0), greEnd(2, r.ports[0], 100), greEnd(3, r.ports[0], 200)}
		outcome := r.put(ends)
		for i, want := range []string{"conflict", "conflict", "verified"} {
			if got := outcome.Ends[i]; got.Status != want || want == "conflict" && got.Reason.Code != "foreign_tunnel" {
				t.Errorf("the end with the key %d is %s: %+v", ends[i].Tunnel.GREKey, got.Status, got.Reason)
			}
		}
		r.put(nil, tombstone(ends[0]), tombstone(ends[1]), tombstone(ends[2])).mustAllBe(t, "removed")
		r.mustHaveGREKeys(t, 0, 100)
		for _, name := range theirs {
			if i := r.snapshot().ByName(name); i == nil || i.Tag != "" || i.AdminUp {
				t.Errorf("their %s is %+v", name, i)
			}
		}
	})
}

func TestDeletedKeyedTunnelIsDriftAndCreatedAgain(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanGREKeys)
		ends := []intent.End{greEnd(1, r.ports[0], 100), greEnd(2, r.ports[0], 200)}
		r.put(ends).mustAllBe(t, "verified")
		kept := r.tunnelNames(ends[1:])
		r.deleteTunnel(r.tunnelOf(ends[0].Key))
		r.mustHaveGREKeys(t, 200)
		if !r.repair(t.Context()) {
			t.Fatal("nothing was repaired")
		}
		if drift := r.driftOf(ends[0].Key); !slices.Contains(drift, "exists") {
			t.Errorf("reported: %v", drift)
		}
		r.mustHaveGREKeys(t, 100, 200)
		if now := r.tunnelNames(ends[1:]); !maps.Equal(now, kept) || len(r.driftOf(ends[1].Key)) != 0 {
			t.Errorf("the other line has %v and had %v, with the drift %v", now, kept, r.driftOf(ends[1].Key))
		}
	})
}

// TestUntaggedKeyedTunnelOfACrashIsAdopted: the journal has the key of the planned tunnel.
func TestUntaggedKeyedTunnelOfACrashIsAdopted(t *testing.T) {
	onEveryVPP(t, func(t *testing.T, r *router) {
		r.needs(t, observe.CanGREKeys)
		end := greEnd(1, r.ports[0], 100)
		in := &intent.Intent{Router: "rhino", Generation: 1, Present: []intent.End{end}}
		todo := plan.Diff(in, r.snapshot(), ownership.Journal{}, nil)
		if err := r.journal.Claim(ownership.Journal{Boot: boot(r.session), Claims: todo.CreationClaims}); err != nil {
			t.Fatal(err)
		}
		r.greByHand(100)
		theirs := r.greByHand(200) // a foreign tunnel with the same addresses
		r.open()                   // the agent starts again
		r.put([]intent.End{end}).mustAllBe(t, "verified")
		r.mustHaveGREKeys(t, 100, 200)
		if i := r.snapshot().ByName(theirs); i == nil || i.Tag != "" {
			t.Errorf("their %s is %+v", theirs, i)
		}
	})
}

// withoutGREKeys starts a stand-in for VPP up to 25.06, which differs in its message table.
func withoutGREKeys(t *testing.T) (api, stats string) {
	t.Helper()
	sim, err := vppsim.Start(t.Context(), vppsim.Config{
		Version: "25.06-vppsim", WithoutMessages: []string{"gre_tunnel_add_del_v2", "gre_tunnel_dump_v2", "gre_tunnel_details_v2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	return sim.APISocket(), sim.StatsSocket()
}

// realWithGREKeys starts one of the VPPs of this machine that supports keys, or does not, by its message
// table.
func realWithGREKeys(has bool) func(t *testing.T) (api, stats string) {
	return func(t *testing.T) (string, string) {
		t.Helper()
		options := realvpp.Options{Plugins: []string{"vxlan", "geneve", "gre", "policer"}}
		real := realvpp.StartThatOrSkip(t, options, fmt.Sprint("GRE keys: ", has), func(v *realvpp.VPP) bool {
			session, err := vpp.Dialer{Socket: v.APISocket(), Timeout: realvpp.ReplyTimeout}.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			return session.Has(&gre.GreTunnelAddDelV2{}) == has
		})
		return real.APISocket(), real.StatsSocket()
	}
}

// becomes replaces VPP by another release: another process that has only its ports.
func (r *router) becomes(api, stats string) {
	r.t.Helper()
	r.session.Close()
	r.session, r.api, r.stats = nil, api, stats
	r.open()
	r.connect()
	r.furnish()
}

// TestUpgradeAndDowngradeOfGREKeys upgrades a router with one line of each kind and downgrades it again.
// Each time, the lines that this VPP supports are built. The others are reported, and the portal must give
// them a separate pair of addresses.
func TestUpgradeAndDowngradeOfGREKeys(t *testing.T) {
	type start = func(t *testing.T) (api, stats string)
	standIn := func(t *testing.T) (string, string) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		return sim.APISocket(), sim.StatsSocket()
	}
	for name, c := range map[string]struct{ older, newer start }{
		"vppsim":                {withoutGREKeys, standIn},
		"vppsim and a real VPP": {withoutGREKeys, realWithGREKeys(true)},
		"two real VPPs":         {realWithGREKeys(false), realWithGREKeys(true)},
	} {
		t.Run(name, func(t *testing.T) {
			api, stats := c.older(t)
			r := newRouter(t, api, stats)
			plain, keyed := greEnd(1, r.ports[0], 0), greEnd(2, r.ports[0], 100)
			both := []intent.End{plain, keyed}
			r.mustRefuseTheKey(t, r.put(both))

			r.becomes(c.newer(t))
			r.put(both).mustAllBe(t, "verified")
			r.mustHaveGREKeys(t, 0, 100)

			r.becomes(c.older(t))
			r.mustRefuseTheKey(t, r.put(both))
			r.becomes(c.newer(t)) // downgraded for an hour only: the same document builds everything again
			r.Converge(t.Context()).mustAllBe(t, "verified")
			r.mustHaveGREKeys(t, 0, 100)
			r.becomes(c.older(t))
			r.mustRefuseTheKey(t, r.Converge(t.Context()))
			if drift := r.driftOf(plain.Key); len(drift) != 0 {
				t.Errorf("the line without a key has drifted: %v", drift)
			}

			keyed.Revision, keyed.Tunnel.GREKey, keyed.Tunnel.Remote = 2, 0, remotes[4].Next()
			r.put([]intent.End{plain, keyed}).mustAllBe(t, "verified")
			if got := len(r.keysOfGRE()); got != 2 {
				t.Errorf("%d GRE tunnels, want 2", got)
			}
		})
	}
}

// mustRefuseTheKey checks that the end without a key is verified, and that the other needs more than this
// VPP supports.
func (r *router) mustRefuseTheKey(t *testing.T, outcome *Outcome) {
	t.Helper()
	plain, keyed := outcome.Ends[0], outcome.Ends[1]
	if plain.Status != "verified" || keyed.Status != "failed" || keyed.Reason.Code != "unsupported" {
		t.Errorf("without a key %s, with one %s: %+v", plain.Status, keyed.Status, keyed.Reason)
	}
	r.mustHaveGREKeys(t, 0)
	for _, i := range r.snapshot().Interfaces {
		if i.IsSub() && i.Sub.Outer == 102 {
			t.Errorf("%s was made for a tunnel that cannot be", describeInterface(i))
		}
	}
}

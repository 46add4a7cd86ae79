package converge

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/policer"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

// tight allows 20 frames of 200 bytes at once, and then one every 1.6 ms.
var tight = intent.Bandwidth{CIR: 1_000_000, CBS: 4_000}

// policedFrames returns the number of frames that the end's policer received, and how many of them it
// dropped.
func (r *router) policedFrames(end intent.Key) (all, dropped uint64) {
	r.t.Helper()
	index := r.snapshot().Policers[ownership.PolicerName(end)].Index
	client := statsclient.NewStatsClient(r.stats)
	if err := client.Connect(); err != nil {
		r.t.Fatal(err)
	}
	defer client.Disconnect()
	entries, err := client.DumpStats("^/net/policer/")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, entry := range entries {
		counters, ok := entry.Data.(adapter.CombinedCounterStat)
		for n := 0; ok && n < len(counters); n++ {
			if int(index) < len(counters[n]) {
				all += counters[n][index].Packets()
				if strings.HasSuffix(string(entry.Name), "violate") {
					dropped += counters[n][index].Packets()
				}
			}
		}
	}
	return all, dropped
}

// mustBePoliced checks that the end's policer drops frames of the port that exceed the rate.
func (r *router) mustBePoliced(t *testing.T, end intent.Key, port string) {
	t.Helper()
	r.send(port, port, "")
	if all, dropped := r.policedFrames(end); all != sentFrames || dropped < sentFrames/2 {
		t.Errorf("the policer got %d frames of %d and dropped %d", all, sentFrames, dropped)
	}
}

func TestWholeBondIsPoliced(t *testing.T) {
	for name, before := range map[string]func(*router, intent.End){
		"a new line": func(*router, intent.End) {},
		"a line that an earlier agent policed where no frame comes": func(r *router, end intent.End) {
			without := end
			without.Bandwidth = intent.Bandwidth{}
			r.put([]intent.End{without}).mustAllBe(r.t, "verified")
			r.must(&policer.PolicerAdd{Name: ownership.PolicerName(end.Key), Infos: observe.PolicerConfig(end.Bandwidth)})
			r.must(&policer.PolicerInput{Name: ownership.PolicerName(end.Key), SwIfIndex: r.index(end.Access.Interface), Apply: true})
			r.forceFullObservation()
		},
	} {
		t.Run(name, func(t *testing.T) {
			byClassifier(t, func(t *testing.T, r *router) {
				member := r.generatedPort(7)
				end := wholePort(1, r.bondOf(member))
				end.Bandwidth = tight
				before(r, end)
				end.Revision++
				outcome := r.put([]intent.End{end})
				outcome.mustAllBe(t, "verified")
				if !outcome.of(t, end.Key).Policed {
					t.Error("the answer says that it is not policed")
				}
				if s := r.snapshot(); s.Policed[uint32(r.index(end.Access.Interface))] {
					t.Error("a policer is applied where no frame comes")
				}
				r.mustBePoliced(t, end.Key, member)
				r.put(nil, tombstone(end)).mustAllBe(t, "removed")
				if s := r.snapshot(); len(s.Policers) != 0 || len(s.Policed) != 0 || len(s.Tables) != 0 || len(s.Bound) != 0 {
					t.Errorf("left behind: %v on %v, classify tables %v bound to %v", s.Policers, s.Policed, s.Tables, s.Bound)
				}
			})
		})
	}
}

// TestWholePortUsesThePolicerNode covers ports whose frames pass that node.
func TestWholePortUsesThePolicerNode(t *testing.T) {
	byClassifier(t, func(t *testing.T, r *router) {
		end := wholePort(1, r.generatedPort(7))
		end.Bandwidth = tight
		outcome := r.put([]intent.End{end})
		outcome.mustAllBe(t, "verified")
		if s := r.snapshot(); !outcome.of(t, end.Key).Policed || !s.Policed[uint32(r.index(end.Access.Interface))] || len(s.Bound) != 0 {
			t.Errorf("policed %v, applied %v, bound %v", outcome.of(t, end.Key).Policed, s.Policed, s.Bound)
		}
		r.mustBePoliced(t, end.Key, end.Access.Interface)
	})
}

// TestWholePortIsPolicedOnlyIfItsFramesPassAPolicer: ports of VPP's device API need their hardware, so the
// stand-in simulates them.
func TestWholePortIsPolicedOnlyIfItsFramesPassAPolicer(t *testing.T) {
	for _, device := range []string{"", "iavf", "octeon", "ena", "mvpp2", "of a later VPP"} {
		for version, without := range map[string][]string{
			"25.10-vppsim": nil, "26.02-vppsim.ports": {"classify_session_dump"}, "26.06-vppsim": nil,
		} {
			t.Run(device+" "+version, func(t *testing.T) {
				sim, err := vppsim.Start(t.Context(), vppsim.Config{
					Version: version, WithoutMessages: without, Interfaces: []vppsim.Interface{{Name: "eth1", Device: device}},
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(sim.Stop)
				r := newRouter(t, sim.APISocket(), sim.StatsSocket())
				end := wholePort(1, "eth1")
				end.Bandwidth = profile
				outcome := r.put([]intent.End{end})
				outcome.mustAllBe(t, "verified")
				want := device == "" || without == nil
				if name, times := sim.Policed("eth1"); outcome.of(t, end.Key).Policed != want || (times == 1) != want || times > 1 {
					t.Errorf("the answer says %v, and frames pass %q %d times", outcome.of(t, end.Key).Policed, name, times)
				}
			})
		}
	}
}

// dottedRouters runs a test with a dot in the name of a port, next to a port with a sub-interface of the
// same name.
func dottedRouters(t *testing.T, test func(t *testing.T, r *router, port string)) {
	t.Run("vppsim", func(t *testing.T) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{Interfaces: []vppsim.Interface{
			{Name: "host-eth0", SubInterfaces: []vppsim.SubInterface{{ID: 5, OuterVLAN: 5, ExactMatch: true}}}, {Name: "host-eth0.5"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		test(t, newRouter(t, sim.APISocket(), sim.StatsSocket()), "host-eth0.5")
	})
	t.Run("real VPP", func(t *testing.T) {
		r, _ := newRealRouterWith(t, "af_packet")
		near := fmt.Sprintf("d%d.5", os.Getpid())
		if out, err := exec.Command("ip", "link", "add", near, "type", "veth", "peer", "name", "x"+near).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Cleanup(func() { exec.Command("ip", "link", "del", near).Run() })
		r.must(&vlib.CliInband{Cmd: "create host-interface name " + near})
		r.setAdmin("host-"+near, adminUp)
		test(t, r, "host-"+near)
	})
}

func TestLineOnAPortWithADotInItsNameIsPoliced(t *testing.T) {
	dottedRouters(t, func(t *testing.T, r *router, port string) {
		vlan := vxlanEnd(1, port)
		vlan.Bandwidth = profile
		for range 2 {
			outcome := r.put([]intent.End{vlan})
			outcome.mustAllBe(t, "verified")
			if !outcome.of(t, vlan.Key).Policed {
				t.Error("the VLAN is not policed")
			}
			vlan.Revision++
		}
		if stored, _ := r.store.Current(); stored != nil {
			if left, _, err := r.Plan(t.Context(), stored); err != nil || len(left.Ops) != 0 {
				t.Errorf("%v, left to do: %+v", err, left.Ops)
			}
		}
		r.put(nil, tombstone(vlan)).mustAllBe(t, "removed")
	})
}

// silentCLI is a session to a VPP that refuses to show features.
type silentCLI struct{ *vpp.Session }

func (s silentCLI) Calls(ctx context.Context, requests []api.Message) ([]api.Message, error) {
	answers, err := s.Session.Calls(ctx, requests)
	for n, request := range requests {
		if m, ok := request.(*vlib.CliInband); ok && strings.HasPrefix(m.Cmd, "show interface") && err == nil {
			answers[n] = &vlib.CliInbandReply{Retval: -1, Reply: "unknown input"}
		}
	}
	return answers, err
}

// TestPolicingIsNotReportedIfVPPDoesNotShowIt: a refused query is no result. The line is verified, the
// agent does not repeat its work, and it does not report the line as policed.
func TestPolicingIsNotReportedIfVPPDoesNotShowIt(t *testing.T) {
	byClassifier(t, func(t *testing.T, r *router) {
		r.mu.Lock()
		r.Engine.session = silentCLI{r.session}
		r.mu.Unlock()
		_, vlan := policedEnds(r)
		outcome := r.put([]intent.End{vlan})
		outcome.mustAllBe(t, "verified")
		if outcome.of(t, vlan.Key).Policed {
			t.Error("it is said to be policed, and nothing shows that")
		}
		writes := r.writes()
		if r.repair(t.Context()) || r.writes() != writes {
			t.Error("something was done for it again")
		}
		r.put(nil, tombstone(vlan)).mustAllBe(t, "removed")
		if s := r.snapshot(); len(s.Policers) != 0 || len(s.Tables) != 0 || len(s.Bound) != 0 {
			t.Errorf("left behind: %v, classify tables %v bound to %v", s.Policers, s.Tables, s.Bound)
		}
	})
}

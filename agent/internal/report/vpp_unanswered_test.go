package report

import (
	"encoding/json"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

func TestWithoutVPPNoListIsNull(t *testing.T) {
	text, err := json.Marshal((&Reporter{}).withoutVPP(converge.Status{}))
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		if value == nil && name != "watching" && name != "freeze" {
			t.Errorf("%s is null", name)
		}
	}
}

func TestCountingStopsWhileVPPDoesNotRespondIfItsInterfacesChanged(t *testing.T) {
	sim, err := vppsim.Start(t.Context(), vppsim.Config{Interfaces: []vppsim.Interface{{Name: "cust0"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	session, err := vpp.Dialer{Socket: sim.APISocket(), Timeout: 5 * time.Second}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	boot, err := statseg.BootTime(t.Context(), sim.StatsSocket())
	if err != nil {
		t.Fatal(err)
	}
	r := &Reporter{engine: &dyingVPP{}, segment: statseg.NewReopeningSegment(sim.StatsSocket()), log: quiet, now: time.Now}
	t.Cleanup(r.segment.Close)
	prepare := func() {
		epoch, err := r.segment.Epoch(boot)
		if err != nil {
			t.Fatal(err)
		}
		access := Access{Key: alice.Key, BootMS: boot, Index: 1, Name: "cust0"}
		r.view = countedView{View: View{BootMS: boot, Accesses: []Access{access}}, epoch: epoch}
		r.count(t.Context())
	}
	prepare()
	if r.countUnanswered(); len(r.Totals()) != 1 {
		t.Errorf("nothing has come or gone, and it counts %v", r.Totals())
	}
	if _, err := session.Call(t.Context(), &interfaces.CreateLoopbackInstance{}); err != nil {
		t.Fatal(err)
	}
	if s := r.countUnanswered(); s != nil || len(r.Totals()) != 0 {
		t.Errorf("an interface has come, and it counts %v", r.Totals())
	}
	prepare()
	if len(r.Totals()) != 1 {
		t.Errorf("after the next reading it counts %v", r.Totals())
	}
}

package main

import (
	"encoding/json"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"longline.dev/agent/internal/vppsim"
)

func TestVpptestctlShowsItsChanges(t *testing.T) {
	sim, err := vppsim.Start(t.Context(), vppsim.Config{Interfaces: []vppsim.Interface{{Name: "host-cust1"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	do := func(args ...string) (string, error) {
		var out strings.Builder
		err := run(append([]string{sim.APISocket()}, args...), &out)
		return out.String(), err
	}
	for _, step := range [][]string{{"add-sub", "host-cust1", "7"}, {"up", "host-cust1.7"}} {
		if _, err := do(step...); err != nil {
			t.Fatal(step, err)
		}
	}
	if _, err := do("add-sub", "host-cust1", "7"); err == nil {
		t.Error("VPP's refusal of a VLAN that is taken was not shown")
	}
	out, err := do("show")
	if err != nil {
		t.Fatal(err)
	}
	var got shown
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	sub := got.Interfaces[len(got.Interfaces)-1]
	if sub.Name != "host-cust1.7" || sub.Outer != 7 || !sub.Exact || !sub.AdminUp || sub.Parent == sub.Index {
		t.Errorf("the sub-interface is shown as %+v", sub)
	}
	if _, err := do("delete-sub", "host-cust1.7"); err != nil {
		t.Fatal(err)
	}
	if out, _ := do("show"); strings.Contains(out, "host-cust1.7") {
		t.Error("it is still there after delete-sub")
	}
	if _, err := do("delete-sub"); err == nil {
		t.Error("a command without its argument was taken")
	}
}

func TestVPPNoticesThatVpptestctlDisconnected(t *testing.T) {
	sim, err := vppsim.Start(t.Context(), vppsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Stop)
	sim.LeaveErrno(syscall.EAGAIN) // with this errno VPP overlooks a client that leaves without deregistering
	if err := run([]string{sim.APISocket(), "show"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	for left := time.Now().Add(10 * time.Second); sim.Clients() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(left) {
			t.Fatalf("%d clients are left", sim.Clients())
		}
	}
}

package vpp

import (
	"slices"
	"testing"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vppsim"
)

func TestThePluginsOfVPPAreListedByName(t *testing.T) {
	expectPlugins := func(t *testing.T, socket string, want ...string) {
		t.Helper()
		session, err := Dialer{Socket: socket, Timeout: realvpp.ReplyTimeout}.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(session.Close)
		if got := session.Info().Plugins; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	t.Run("vppsim", func(t *testing.T) {
		sim, err := vppsim.Start(t.Context(), vppsim.Config{WithoutMessages: []string{"geneve_tunnel_dump"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Stop)
		expectPlugins(t, sim.APISocket(), "gre", "vxlan")
	})
	t.Run("real VPP", func(t *testing.T) {
		real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan", "gre"}})
		expectPlugins(t, real.APISocket(), "gre", "vxlan")
	})
}

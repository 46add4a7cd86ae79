package vppsim_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"longline.dev/agent/internal/vppsim"
)

func load(t *testing.T, text string) (vppsim.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vppsim.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return vppsim.LoadConfig(path)
}

func TestAConfigurationFileCreatesPortsAndForeignSubinterfaces(t *testing.T) {
	config, err := load(t, `{
		"version": "24.06-vppsim",
		"interfaces": [
			{"name": "host-cust1", "ip_mtu": 1500, "link_up": false, "tag": "acme",
			 "sub_interfaces": [{"id": 7, "outer_vlan": 7, "exact_match": true, "tag": "theirs"}]},
			{"name": "host-bb0", "addresses": ["10.0.0.0/31", "fd00::1/127"]}],
		"routes": [{"prefix": "10.255.0.2/32"}, {"prefix": "10.9.0.0/16", "drop": true}],
		"traffic": {"rate_bps": 20000000, "frame_bytes": 700},
		"without_messages": ["gre_tunnel_add_del_v2"],
		"links": {"mtu": 1500, "fragments_over": 1400}}`)
	if err != nil {
		t.Fatal(err)
	}
	got := start(t, config).Interfaces()
	if want := []string{"local0", "host-cust1", "host-cust1.7", "host-bb0"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAnInvalidConfigurationIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"unknown field":      `{"interface": []}`,
		"no prefix length":   `{"interfaces": [{"name": "a", "addresses": ["10.0.0.1"]}]}`,
		"negative rate":      `{"traffic": {"rate_bps": -1}}`,
		"not JSON":           `version: 25.10`,
		"route to no prefix": `{"routes": [{"prefix": "10.0.0.0/33"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if config, err := load(t, text); err == nil {
				t.Errorf("it was taken: %+v", config)
			}
		})
	}
}

func TestForeignSubinterfacesWithTheSameTagsAreRefusedAtStart(t *testing.T) {
	_, err := vppsim.Start(context.Background(), vppsim.Config{Interfaces: []vppsim.Interface{{
		Name: "host-cust1", SubInterfaces: []vppsim.SubInterface{{ID: 1, OuterVLAN: 5}, {ID: 2, OuterVLAN: 5}}}}})
	if err == nil || !strings.Contains(err.Error(), "host-cust1.2") {
		t.Errorf("error %v", err)
	}
}

func TestStoppingRemovesTheSockets(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sim, err := vppsim.Start(ctx, vppsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sim.Stop()
	for _, socket := range []string{sim.APISocket(), sim.StatsSocket()} {
		if _, err := os.Stat(socket); !os.IsNotExist(err) {
			t.Errorf("%s: %v", socket, err)
		}
	}
	if err := sim.Restart(); err == nil {
		t.Error("a stopped VPP was restarted")
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"

	"longline.dev/agent/internal/vppsim"
)

// newerMessages are the messages that some supported releases lack, with the first release that has them.
var newerMessages = map[string]string{
	"want_ping_finished_events": "24.02", "lcp_itf_pair_get_v2": "24.06",
	"bfd_udp_enable_multihop": "25.02", "bfd_udp_enable_multihop_reply": "25.02",
	"pg_delete_interface": "25.02", "pg_delete_interface_reply": "25.02",
	"feature_is_enabled": "25.06", "feature_is_enabled_reply": "25.06",
	"pg_create_interface_v3": "25.10", "pg_create_interface_v3_reply": "25.10",
	"gre_tunnel_add_del_v2": "25.10", "gre_tunnel_add_del_v2_reply": "25.10",
	"gre_tunnel_dump_v2": "25.10", "gre_tunnel_details_v2": "25.10",
}

// TestNoReleaseChangedAMessageThatTheAgentUses compares the bindings with the CRCs in the API definitions
// of every release (testdata/vpp_releases.json). A message has to be the same in all releases that have it.
func TestNoReleaseChangedAMessageThatTheAgentUses(t *testing.T) {
	var listed struct {
		Releases []string
		Since    map[string]string // for messages that not all releases have
		CRC      map[string]string
	}
	data, err := os.ReadFile("testdata/vpp_releases.json")
	if err == nil {
		err = json.Unmarshal(data, &listed)
	}
	if err != nil {
		t.Fatal(err)
	}
	bindings := make(map[string]string)
	for _, messages := range api.GetRegisteredMessages() {
		for _, m := range messages {
			bindings[m.GetMessageName()] = m.GetCrcString()
		}
	}
	for message, crc := range listed.CRC {
		if bindings[message] != crc {
			t.Errorf("%s has the CRC %s and the bindings have %q", message, crc, bindings[message])
		}
		if since := listed.Since[message]; since != newerMessages[message] {
			t.Errorf("%s exists since %q and the stand-in has it since %q", message, since, newerMessages[message])
		}
	}
	if len(listed.CRC) < 60 || !slices.Equal(listed.Releases, supported) {
		t.Errorf("%d messages of %v", len(listed.CRC), listed.Releases)
	}
}

var supported = []string{"23.10", "24.02", "24.06", "24.10", "25.02", "25.06", "25.10", "26.02", "26.06"}

// as makes the stand-in behave as the given VPP release.
func as(release string) func(*vppsim.Config) {
	return func(c *vppsim.Config) {
		c.Version = release + "-vppsim"
		for message, since := range newerMessages {
			if release < since {
				c.WithoutMessages = append(c.WithoutMessages, message)
			}
		}
	}
}

// pluginMessages are the messages of each encapsulation's plugin. A VPP that does not load the plugin has
// none of them.
var pluginMessages = map[string][]string{
	"vxlan":  {"vxlan_add_del_tunnel_v3", "vxlan_tunnel_v2_dump"},
	"geneve": {"geneve_add_del_tunnel2", "geneve_tunnel_dump"},
	"gre":    {"gre_tunnel_add_del", "gre_tunnel_add_del_v2", "gre_tunnel_dump", "gre_tunnel_dump_v2"},
}

// oneOfEach returns an intent with one VLL of each encapsulation that uses a tunnel.
func oneOfEach() []byte {
	var present []string
	for i, encapsulation := range []string{"vxlan", "geneve", "gre"} {
		vni := fmt.Sprint(70001 + i)
		if encapsulation == "gre" {
			vni = "null"
		}
		present = append(present, fmt.Sprintf(`{"vll": "00000000-0000-4000-8000-00000000000%d", "end": "a", "revision": 1, "admin_up": true,
			"frame": 1522, "bandwidth": null,
			"access": {"interface": "cust0", "tagging": "dot1q", "outer_vlan": %d, "inner_vlan": null, "exact_match": true},
			"transport": {"encapsulation": %q, "family": 4, "local": "10.255.0.1", "remote": "10.255.0.2", "vni": %s}}`,
			i, 100+i, encapsulation, vni))
	}
	return []byte(`{"schema": 1, "router": "rhino", "generation": 1, "present": [` + strings.Join(present, ",") + `], "removed": []}`)
}

func encapsulationsOf(report map[string]any) []string {
	var all []string
	for _, each := range report["encapsulations"].([]any) {
		all = append(all, each.(string))
	}
	return all
}

func (a *agent) awaitVPPReport() map[string]any {
	a.t.Helper()
	return await(a.t, a.portal.observed, "VPP", func(r map[string]any) bool { return r["vpp"].(map[string]any)["connected"] == true })
}

func TestEverySupportedReleaseCreatesEveryEncapsulation(t *testing.T) {
	for _, release := range supported {
		t.Run(release, func(t *testing.T) {
			a := newAgentWith(t, as(release))
			a.start()
			a.awaitReady()
			report := a.awaitVPPReport()
			if got := encapsulationsOf(report); !slices.Equal(got, []string{"l2xc", "vxlan", "geneve", "gre"}) {
				t.Errorf("reports %v", got)
			}
			if keys := release >= "25.10"; report["gre_keys"] != keys {
				t.Errorf("reports that GRE has keys: %v", report["gre_keys"])
			}
			if multihop := release >= "25.02"; report["path_watch"] != multihop {
				t.Errorf("reports that it can watch paths: %v", report["path_watch"])
			}
			if generates := release >= "25.10"; report["line_tests"] != generates {
				t.Errorf("reports that it can send test frames: %v", report["line_tests"])
			}
			if report["policing"] != "subinterface" || report["vpp"].(map[string]any)["version"] != release+"-vppsim" {
				t.Errorf("reports %v and %v", report["policing"], report["vpp"])
			}
			for _, end := range a.sendBody(http.MethodPut, "/v1/intent", oneOfEach())["ends"].([]any) {
				if end := end.(map[string]any); end["status"] != "verified" {
					t.Errorf("%v", end)
				}
			}
		})
	}
}

func TestEncapsulationsThatVPPLacksAreUnsupportedAndTheOthersAreCreated(t *testing.T) {
	for missing, messages := range pluginMessages {
		t.Run(missing, func(t *testing.T) {
			a := newAgentWith(t, func(c *vppsim.Config) { c.WithoutMessages = messages })
			a.start()
			a.awaitReady()
			if got := encapsulationsOf(a.awaitVPPReport()); slices.Contains(got, missing) || len(got) != 3 {
				t.Errorf("reports %v", got)
			}
			for i, end := range a.sendBody(http.MethodPut, "/v1/intent", oneOfEach())["ends"].([]any) {
				end := end.(map[string]any)
				status, code := "verified", any(nil)
				if []string{"vxlan", "geneve", "gre"}[i] == missing {
					status, code = "failed", "unsupported"
				}
				reason, _ := end["reason"].(map[string]any)
				if end["status"] != status || reason["code"] != code {
					t.Errorf("%v, want %s %v", end, status, code)
				}
			}
		})
	}
}

package packettrace

import (
	_ "embed"
	"strings"
	"testing"
)

// twoLines is the output of VPP 25.10 for a packet from pg0.100 (sw_if_index 3) to vxlan_tunnel0 (7), and
// for one from pg0.200 (4) to pg1.100 (5).
//
//go:embed testdata/two-lines.txt
var twoLines string

var vxlanLine = map[uint32]string{3: "pg0.100", 7: "vxlan_tunnel0"}

func TestOnlyPacketsOfTheLineAreShown(t *testing.T) {
	packets, count := parse(twoLines)
	if count != 2 {
		t.Fatalf("%d packets", count)
	}
	for n, want := range []bool{true, false} {
		if got := packets[n].isOf(vxlanLine); got != want {
			t.Errorf("packet %d: %v", n+1, got)
		}
	}
	shown := packets[0].shown(vxlanLine)
	if shown.At != "00:00:00:904691" || shown.From != "pg0.100" {
		t.Errorf("%+v", shown)
	}
	var nodes []string
	for _, node := range shown.Nodes {
		nodes = append(nodes, node.Name)
	}
	if got := strings.Join(nodes, " "); got != "pg-input ethernet-input l2-input l2-input-vtr l2-output vxlan4-encap ip4-rewrite pg1-output pg1-tx" {
		t.Errorf("nodes %s", got)
	}
}

func TestCaptureShowsHeadersWithoutPayload(t *testing.T) {
	packets, _ := parse(twoLines)
	var all strings.Builder
	for _, node := range packets[0].shown(vxlanLine).Nodes {
		all.WriteString(strings.Join(node.Says, "\n") + "\n")
	}
	for _, want := range []string{
		"IP4: 02:00:00:00:00:0a -> 02:00:00:00:00:0b 802.1q vlan 100", "VXLAN encap to vxlan_tunnel0 vni 5", "UDP: 10.255.0.1 -> 10.255.0.2",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("without %q:\n%s", want, &all)
		}
	}
	for _, bytes := range []string{"08 00 45", "0011bc", "02000000000202", "00000020"} {
		if strings.Contains(all.String(), bytes) {
			t.Errorf("with %q:\n%s", bytes, &all)
		}
	}
}

// TestPacketsThatAlsoPassAnotherLineAreNotShown: a customer may connect one line to another.
func TestPacketsThatAlsoPassAnotherLineAreNotShown(t *testing.T) {
	text := "Packet 1\n\n00:00:00:000001: l2-input\n  l2-input: sw_if_index 3 dst x src y\n00:00:00:000002: l2-input\n  l2-input: sw_if_index 4 dst x src y\n"
	packets, _ := parse(text)
	if packets[0].isOf(vxlanLine) {
		t.Error("it is shown")
	}
	if !packets[0].isOf(map[uint32]string{3: "a", 4: "z"}) {
		t.Error("of a line with both it is not shown")
	}
}

package converge

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/realvpp"
)

// linuxCP is a VPP with pairs for Linux interfaces of a separate network namespace. linux_nl receives their
// addresses from it, as it does with BIRD or FRR. VPP's test plugin creates the pairs, with Linux interface
// indices from 1 on. No TAP is needed, which would require /dev/vhost-net.
type linuxCP struct {
	*router
	real   *realvpp.VPP
	paired []string
}

// newLinuxCP has the ports memif0/0, with the operator's VLAN 10 on it, and memif0/1; all three are paired.
func newLinuxCP(t *testing.T) *linuxCP {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread and the namespace end with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("SKIPPED, NO ADDRESSES OF LINUX CP PAIRS: no network namespace can be made: %v", err)
	}
	ip := func(command string) {
		t.Helper()
		if said, err := exec.CommandContext(t.Context(), "ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED, NO ADDRESSES OF LINUX CP PAIRS: ip %s: %v %s", command, err, said)
		}
	}
	for index := 2; index <= 4; index++ { // 1 is lo
		ip(fmt.Sprintf("link add linux%d index %d type veth peer name peer%d index %d", index, index, index, 100+index))
		ip(fmt.Sprintf("link set linux%d up", index))
	}
	r, real := newRealRouterWith(t, "memif", "linux_nl")
	l := &linuxCP{r, real, []string{"memif0/0", "memif0/0.10", "memif0/1"}}
	for _, line := range []string{
		"create interface memif id 0 master", "create interface memif id 1 master", "create interface memif id 2 master",
		"create sub-interfaces memif0/0 10 dot1q 10 exact-match",
		"set interface state memif0/0 up", "set interface state memif0/1 up", "set interface state memif0/0.10 up",
	} {
		l.cli(t, line)
	}
	for _, port := range append([]string{"memif0/2"}, l.paired...) {
		if _, err := real.CLI(fmt.Sprintf("test lcp add phy %s host %s", port, strings.TrimSpace(l.cli(t, "create loopback interface")))); err != nil {
			t.Skipf("SKIPPED, NO LINUX CP PAIR ON THIS REAL VPP: it lacks linux_cp_unittest_plugin.so: %v", err)
		}
	}
	ip("addr add 192.0.2.1/24 dev linux2")
	ip("addr add 2001:db8:2::1/64 dev linux2")
	ip("addr add 198.51.100.1/24 dev linux3")
	ip("addr add 203.0.113.1/31 dev linux4")
	l.await(t, "192.0.2.1/24", "2001:db8:2::1/64", "198.51.100.1/24", "203.0.113.1/31")
	return l
}

func (l *linuxCP) cli(t *testing.T, line string) string {
	t.Helper()
	said, err := l.real.CLI(line)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// picture returns all pairs and the addresses of paired interfaces, as VPP shows them.
func (l *linuxCP) picture(t *testing.T) string {
	t.Helper()
	all := l.cli(t, "show lcp")
	for _, name := range l.paired {
		all += l.cli(t, "show interface addr "+name)
	}
	return all
}

func (l *linuxCP) await(t *testing.T, addresses ...string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		picture, missing := l.picture(t), ""
		for _, address := range addresses {
			if !strings.Contains(picture, address) {
				missing = address
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Skipf("SKIPPED, NO ADDRESSES OF LINUX CP PAIRS: %s does not come from Linux (linux_nl_plugin.so?):\n%s", missing, picture)
		}
	}
}

func TestLinesDoNotChangeLinuxCPPairsAndTheirAddresses(t *testing.T) {
	l := newLinuxCP(t)
	before := l.picture(t)
	line, far := vxlanEnd(1, "memif0/0"), vxlanEnd(2, "memif0/1")
	far.Tunnel.Encapsulation = intent.GENEVE
	near, other := vxlanEnd(3, "memif0/0"), vxlanEnd(3, "memif0/1")
	near.Tunnel, other.Tunnel = intent.Tunnel{Encapsulation: intent.L2XC}, intent.Tunnel{Encapsulation: intent.L2XC}
	other.Key.End = "z"
	policed, moved, suspended, tested := line, line, line, line
	policed.Bandwidth = intent.Bandwidth{CIR: 1e8, CBS: 1e5}
	moved.Access.Outer, suspended.AdminUp, tested.Testing = 201, false, true
	made := []intent.End{line, far, near, other}
	ends := adopted([]intent.End{line}, 7)
	for _, step := range []struct {
		name    string
		present []intent.End
		removed []intent.Tombstone
		status  string
	}{
		{"made", made, nil, "verified"},
		{"policed", []intent.End{policed, far, near, other}, nil, "verified"},
		{"moved to another VLAN", []intent.End{moved, far, near, other}, nil, "verified"},
		{"suspended", []intent.End{suspended, far, near, other}, nil, "verified"},
		{"tested", []intent.End{tested}, []intent.Tombstone{tombstone(far), tombstone(near), tombstone(other)}, ""},
		{"removed", nil, []intent.Tombstone{tombstone(line)}, "removed"},
		{"made again", []intent.End{line}, nil, "verified"},
		{"let go of", nil, released([]intent.End{line}, "cust-7", "by hand"), "removed"},
		{"adopted", ends, nil, "verified"},
		{"removed as ours", nil, []intent.Tombstone{tombstone(ends[0])}, "removed"},
	} {
		outcome := l.put(step.present, step.removed...)
		if step.status != "" {
			outcome.mustAllBe(t, step.status)
		}
		if now := l.picture(t); now != before {
			t.Fatalf("once lines are %s:\n%s\nand before\n%s", step.name, now, before)
		}
	}
	if said, err := exec.CommandContext(t.Context(), "ip", "addr", "add", "198.51.100.5/24", "dev", "linux3").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, said)
	}
	l.await(t, "198.51.100.5/24")
}

// A cross-connect takes the frames away from the pair of its interface, without an error of VPP, and the
// pair is deleted with the interface.
func TestLinuxCPPairOnTheVLANOfALineIsAConflict(t *testing.T) {
	l := newLinuxCP(t)
	before := l.picture(t)
	end := vxlanEnd(1, "memif0/0")
	end.Access.Outer = 10
	adopting := end
	adopting.VLL, adopting.Adopt = vllID(2), true
	refused := func(end intent.End, code string) {
		t.Helper()
		got := l.put([]intent.End{end}).of(t, end.Key)
		if got.Status != "conflict" || got.Reason.Code != code || !strings.Contains(got.Reason.Message, "paired with the Linux interface tap3") {
			t.Errorf("got %+v %+v", got, got.Reason)
		}
		if now := l.picture(t); now != before {
			t.Errorf("now\n%s\nand before\n%s", now, before)
		}
	}
	refused(end, "foreign_subinterface")
	for _, line := range []string{
		"create vxlan tunnel src 10.255.0.1 dst 10.255.0.2 vni 1001", "set interface l2 xconnect memif0/0.10 vxlan_tunnel0",
		"set interface l2 xconnect vxlan_tunnel0 memif0/0.10", "set interface l2 tag-rewrite memif0/0.10 pop 1",
	} {
		l.cli(t, line)
	}
	if before = l.picture(t); !strings.Contains(before, "memif0/0.10 ") || !strings.Contains(before, "L2 xconnect vxlan_tunnel0") {
		t.Fatalf("VPP has refused the cross-connect of a paired interface: %s", before)
	}
	refused(adopting, "adoption_differs")
}

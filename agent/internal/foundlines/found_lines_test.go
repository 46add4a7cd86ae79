package foundlines

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
)

// network has ports 1 and 2, sub-interfaces 11 and 12 of port 1 and 21 of port 2, and tunnels 31 and 32.
func network() *observe.Snapshot {
	s := &observe.Snapshot{Connects: map[uint32]uint32{}, Bridged: map[uint32]uint32{}}
	for _, index := range []uint32{1, 2, 11, 12, 21, 31, 32} {
		i := &observe.Interface{Index: index, Sup: index, Name: fmt.Sprint("if", index)}
		if index > 10 && index < 30 {
			i.Sup, i.Sub = index/10, observe.SubInterface{ID: index, Tags: 1, Exact: true, Outer: uint16(index)}
		}
		s.Interfaces = append(s.Interfaces, i)
	}
	for _, index := range []uint32{31, 32} {
		s.Tunnels = append(s.Tunnels, &observe.Tunnel{Index: index, Default: true, Tunnel: intent.Tunnel{
			Encapsulation: intent.VXLAN, Local: netip.MustParseAddr("10.255.0.1"), Remote: netip.MustParseAddr("10.255.0.2"), VNI: index,
		}})
	}
	return s.Index()
}

// described returns the circuits as text: "near>far" for Out, "near<far" for In, "near=far" for both.
func described(circuits []Circuit) (texts []string) {
	for _, c := range circuits {
		far, direction := "", map[[2]bool]string{{true, false}: ">", {false, true}: "<", {true, true}: "="}[[2]bool{c.Out, c.In}]
		if c.Far.Interface != nil {
			far = c.Far.Name
		}
		texts = append(texts, c.Near.Name+direction+far)
	}
	return texts
}

func TestCrossConnectsOfOthersAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		connects map[uint32]uint32
		bridged  []uint32
		ours     []uint32
		want     []string
	}{
		"nothing but tunnels":             {nil, nil, nil, []string{"if31", "if32"}},
		"both directions":                 {map[uint32]uint32{11: 31, 31: 11}, nil, nil, []string{"if11=if31", "if32"}},
		"only towards the tunnel":         {map[uint32]uint32{11: 31}, nil, nil, []string{"if11>if31", "if32"}},
		"only from the tunnel":            {map[uint32]uint32{31: 11}, nil, nil, []string{"if11<if31", "if32"}},
		"a whole port":                    {map[uint32]uint32{2: 32, 32: 2}, nil, nil, []string{"if2=if32", "if31"}},
		"within the router":               {map[uint32]uint32{21: 11, 11: 21}, nil, nil, []string{"if11=if21", "if31", "if32"}},
		"between two tunnels":             {map[uint32]uint32{32: 31, 31: 32}, nil, nil, []string{"if31=if32"}},
		"a ring of three":                 {map[uint32]uint32{11: 12, 12: 21, 21: 11}, nil, nil, []string{"if11>if12", "if11<if21", "if12>if21", "if31", "if32"}},
		"tunnels in a bridge":             {nil, []uint32{31}, nil, []string{"if32"}},
		"the agent's":                     {map[uint32]uint32{11: 31, 31: 11}, nil, []uint32{11, 31, 32}, nil},
		"one side the agent's":            {map[uint32]uint32{11: 31, 31: 11, 12: 31}, nil, []uint32{31, 32}, nil},
		"what leads to no interface":      {map[uint32]uint32{11: 99}, nil, nil, []string{"if31", "if32"}},
		"a tunnel that sends to an agent": {map[uint32]uint32{31: 12}, nil, []uint32{12}, []string{"if32"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, todo := network(), &plan.Plan{}
			s.Connects = c.connects
			for _, index := range c.bridged {
				s.Bridged[index] = 7
			}
			for _, index := range c.ours {
				todo.Owned = append(todo.Owned, &plan.EndInterface{Interface: s.ByIndex(index)})
			}
			if got := described(Circuits(s, todo)); !slices.Equal(got, c.want) {
				t.Errorf("found %q, wanted %q", got, c.want)
			}
		})
	}
}

func TestEachSideHasItsPortOrTunnel(t *testing.T) {
	s := network()
	s.Connects = map[uint32]uint32{11: 31}
	c := Circuits(s, &plan.Plan{})[0]
	if c.Near.Tunnel != nil || c.Near.Port != s.ByIndex(1) || c.Far.Port != nil || c.Far.Tunnel == nil || c.Far.Tunnel.VNI != 31 {
		t.Errorf("found %+v", c)
	}
}

func TestRelabelledInterfacesAreNotFound(t *testing.T) {
	s := network()
	s.Connects = map[uint32]uint32{11: 31, 31: 11, 12: 32, 32: 12}
	todo := &plan.Plan{Relabelled: []*plan.EndInterface{{Interface: s.ByIndex(11)}}}
	if got := described(Circuits(s, todo)); !slices.Equal(got, []string{"if12=if32"}) {
		t.Errorf("found %q", got)
	}
}

package report

import (
	"longline.dev/agent/internal/foundlines"
	"longline.dev/agent/internal/observe"
	"longline.dev/agent/internal/plan"
)

// circuitBody is a circuit that the agent did not create: two cross-connected interfaces, or a tunnel without
// a cross-connect. For such a tunnel, Far is null.
type circuitBody struct {
	Near sideBody  `json:"near"`
	Far  *sideBody `json:"far"`
	Out  bool      `json:"out"` // Near's frames are sent to Far
	In   bool      `json:"in"`  // Far's frames are sent to Near
}

// sideBody is one side of a circuit. It has either an Attachment or a Tunnel, and the other member is null.
type sideBody struct {
	Interface  string          `json:"interface"`
	Tag        *string         `json:"tag"`
	AdminUp    bool            `json:"admin_up"`
	Rewrite    uint32          `json:"rewrite"` // VPP's tag rewrite operation: 0 none, 3 pop one, 4 pop two
	Attachment *attachmentBody `json:"attachment"`
	Tunnel     *tunnelBody     `json:"tunnel"`
}

// attachmentBody is a port or a sub-interface. Tags is 0 for a whole port. Wide means that the sub-interface
// selects frames by something other than given VLANs, for example by "any".
type attachmentBody struct {
	Port    string `json:"port"`
	LinkUp  bool   `json:"link_up"`
	Tags    uint8  `json:"tags"`
	Dot1ad  bool   `json:"dot1ad"`
	Outer   uint16 `json:"outer"`
	Inner   uint16 `json:"inner"`
	Exact   bool   `json:"exact"`
	Wide    bool   `json:"wide"`
	Policed bool   `json:"policed"`
}

// tunnelBody is a tunnel. A member that does not exist for the tunnel's encapsulation is null. Standard means
// that the tunnel has the settings that the agent's own tunnels have (UDP port, mode).
type tunnelBody struct {
	Encapsulation string  `json:"encapsulation"`
	Local         string  `json:"local"`
	Remote        string  `json:"remote"`
	VNI           *uint32 `json:"vni"`
	GREKey        *uint32 `json:"gre_key"`
	Standard      bool    `json:"standard"`
	Table         uint32  `json:"table"`
}

func circuitsOf(s *observe.Snapshot, todo *plan.Plan) []circuitBody {
	bodies := []circuitBody{}
	for _, c := range foundlines.Circuits(s, todo) {
		body := circuitBody{Near: sideOf(s, c.Near), Out: c.Out, In: c.In}
		if c.Far.Interface != nil {
			body.Far = new(sideOf(s, c.Far))
		}
		bodies = append(bodies, body)
	}
	return bodies
}

func sideOf(s *observe.Snapshot, side foundlines.Side) sideBody {
	body := sideBody{Interface: printable(side.Name), AdminUp: side.AdminUp, Rewrite: side.Rewrite}
	if side.Tag != "" {
		body.Tag = printableOr(&side.Tag)
	}
	if t := side.Tunnel; t != nil {
		body.Tunnel = &tunnelBody{
			Encapsulation: string(t.Encapsulation), Local: t.Local.String(), Remote: t.Remote.String(), Standard: t.Default, Table: t.Table,
		}
		if t.Kind().HasVNI {
			body.Tunnel.VNI = &t.VNI
		} else {
			body.Tunnel.GREKey = &t.GREKey
		}
		return body
	}
	body.Attachment = &attachmentBody{
		Tags: side.Sub.Tags, Dot1ad: side.Sub.Dot1ad, Outer: side.Sub.Outer, Inner: side.Sub.Inner, Exact: side.Sub.Exact,
		Wide: side.Sub.Wide(), Policed: s.Policed[side.Index], LinkUp: side.LinkUp,
	}
	if side.Port != nil {
		body.Attachment.Port, body.Attachment.LinkUp = printable(side.Port.Name), side.Port.AdminUp && side.Port.LinkUp
	}
	return body
}

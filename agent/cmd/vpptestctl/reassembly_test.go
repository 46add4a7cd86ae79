package main

import (
	"context"
	"io"
	"testing"

	"go.fd.io/govpp/binapi/ip"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
)

func TestWalkSlowlyKeepsTheOtherReassemblySettings(t *testing.T) {
	real := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan"}})
	reassembly := func(isIP6 bool) ip.IPReassemblyGetReply {
		session, err := vpp.Dialer{Socket: real.APISocket(), Timeout: realvpp.ReplyTimeout}.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		reply, err := called(context.Background(), session, &ip.IPReassemblyGet{IsIP6: isIP6})
		if err != nil {
			t.Fatal(err)
		}
		return *reply.(*ip.IPReassemblyGetReply)
	}
	families := []bool{false, true}
	var wanted []ip.IPReassemblyGetReply
	for _, isIP6 := range families {
		is := reassembly(isIP6)
		is.ExpireWalkIntervalMs = walkMs
		wanted = append(wanted, is)
	}
	if err := run([]string{real.APISocket(), "walk-slowly"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	for i, isIP6 := range families {
		if got := reassembly(isIP6); got != wanted[i] {
			t.Errorf("VPP now has %+v, wanted %+v", got, wanted[i])
		}
	}
}

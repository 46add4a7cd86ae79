package main

import (
	"context"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/vpp"
	"longline.dev/agent/internal/vppsim"
)

type measuredVPP struct {
	api, stats string
	restart    func(context.Context) error // nil if agentbench may not restart it
	stop       func()
}

// startVPP starts a real VPP if one is installed, otherwise vppsim.
func startVPP(ctx context.Context) (measuredVPP, error) {
	if install, err := realvpp.Find(); err == nil {
		v, err := realvpp.Start(ctx, install, realvpp.Options{})
		if err != nil {
			return measuredVPP{}, err
		}
		return measuredVPP{v.APISocket(), v.StatsSocket(), v.Restart, v.Stop}, nil
	}
	sim, err := vppsim.Start(ctx, vppsim.Config{})
	if err != nil {
		return measuredVPP{}, err
	}
	return measuredVPP{sim.APISocket(), sim.StatsSocket(), func(context.Context) error { return sim.Restart() }, sim.Stop}, nil
}

// Loopbacks stand for the customers' ports. One loopback has the local address of the tunnels.
const (
	firstPort    = 200
	localLoop    = 254
	vlansPerPort = 4000
)

var local, remote = netip.MustParseAddr("10.255.254.1"), netip.MustParseAddr("10.255.254.2")

func ports(vlls int) int { return (vlls + vlansPerPort) / vlansPerPort }

func portName(n int) string { return fmt.Sprintf("loop%d", firstPort+n) }

// prepare creates the missing loopbacks.
func prepare(ctx context.Context, session *vpp.Session, vlls int) error {
	instances := []uint32{localLoop}
	for n := range ports(vlls) {
		instances = append(instances, uint32(firstPort+n))
	}
	for _, instance := range instances {
		reply, err := session.Call(ctx, &interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: instance})
		if err != nil {
			return err
		}
		if vpp.Retval(reply) != 0 {
			continue // it exists already
		}
		index := reply.(*interfaces.CreateLoopbackInstanceReply).SwIfIndex
		setup := []api.Message{&interfaces.SwInterfaceSetFlags{SwIfIndex: index, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP}}
		if instance == localLoop {
			setup = append(setup, &interfaces.SwInterfaceAddDelAddress{
				SwIfIndex: index, IsAdd: true, Prefix: ip_types.AddressWithPrefix{Address: vpp.IPAddress(local), Len: 32},
			})
		}
		if _, err := session.Calls(ctx, setup); err != nil {
			return err
		}
	}
	return nil
}

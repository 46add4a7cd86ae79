package main

import (
	"context"
	"fmt"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

// hand is held over one interface.
type hand struct {
	conn  api.Connection
	index interface_types.InterfaceIndex
}

func onInterface(conn api.Connection, name string, do func(hand) error) error {
	all, err := dumpInterfaces(conn)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Name == name {
			return do(hand{conn, interface_types.InterfaceIndex(i.Index)})
		}
	}
	return fmt.Errorf("VPP has no interface %s", name)
}

func (h hand) addSub(vlan uint16) error {
	reply := &interfaces.CreateSubifReply{}
	return h.ask(&interfaces.CreateSubif{
		SwIfIndex: h.index, SubID: uint32(vlan), OuterVlanID: vlan,
		SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH,
	}, reply, &reply.Retval)
}

func (h hand) deleteSub() error {
	reply := &interfaces.DeleteSubifReply{}
	return h.ask(&interfaces.DeleteSubif{SwIfIndex: h.index}, reply, &reply.Retval)
}

func (h hand) setAdmin(up bool) error {
	var flags interface_types.IfStatusFlags
	if up {
		flags = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	reply := &interfaces.SwInterfaceSetFlagsReply{}
	return h.ask(&interfaces.SwInterfaceSetFlags{SwIfIndex: h.index, Flags: flags}, reply, &reply.Retval)
}

func (h hand) disconnect() error {
	reply := &l2.SwInterfaceSetL2XconnectReply{}
	return h.ask(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: h.index, Enable: false}, reply, &reply.Retval)
}

// ask makes VPP's refusal an error; retval lies in reply.
func (h hand) ask(request, reply api.Message, retval *int32) error {
	if err := h.conn.Invoke(context.Background(), request, reply); err != nil {
		return err
	}
	return api.RetvalToVPPApiError(*retval)
}

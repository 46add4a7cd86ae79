package main

import (
	"context"
	"fmt"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

// editor changes one interface.
type editor struct {
	conn  api.Connection
	index interface_types.InterfaceIndex
}

func onInterface(conn api.Connection, name string, do func(editor) error) error {
	all, err := dumpInterfaces(conn)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Name == name {
			return do(editor{conn, interface_types.InterfaceIndex(i.Index)})
		}
	}
	return fmt.Errorf("VPP has no interface %s", name)
}

func (e editor) addSub(vlan uint16) error {
	reply := &interfaces.CreateSubifReply{}
	return e.ask(&interfaces.CreateSubif{
		SwIfIndex: e.index, SubID: uint32(vlan), OuterVlanID: vlan,
		SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH,
	}, reply, &reply.Retval)
}

func (e editor) deleteSub() error {
	reply := &interfaces.DeleteSubifReply{}
	return e.ask(&interfaces.DeleteSubif{SwIfIndex: e.index}, reply, &reply.Retval)
}

func (e editor) setAdmin(up bool) error {
	var flags interface_types.IfStatusFlags
	if up {
		flags = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	reply := &interfaces.SwInterfaceSetFlagsReply{}
	return e.ask(&interfaces.SwInterfaceSetFlags{SwIfIndex: e.index, Flags: flags}, reply, &reply.Retval)
}

func (e editor) disconnect() error {
	reply := &l2.SwInterfaceSetL2XconnectReply{}
	return e.ask(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: e.index, Enable: false}, reply, &reply.Retval)
}

// ask makes VPP's refusal an error; retval lies in reply.
func (e editor) ask(request, reply api.Message, retval *int32) error {
	if err := e.conn.Invoke(context.Background(), request, reply); err != nil {
		return err
	}
	return api.RetvalToVPPApiError(*retval)
}

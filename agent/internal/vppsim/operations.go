package vppsim

import (
	"reflect"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bfd"
	"go.fd.io/govpp/binapi/gre"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/lcp"
	"go.fd.io/govpp/binapi/memclnt"
)

// operations returns all operations, grouped by message family. The first operation must be sockclnt_create,
// because its position in the list fixes its message ID.
func operations() []operation {
	return []operation{
		on((*vpp).sockclntCreate, &memclnt.SockclntCreateReply{}),
		on((*vpp).sockclntDelete, &memclnt.SockclntDeleteReply{}),
		on((*vpp).controlPing, &memclnt.ControlPingReply{}),
		answer((*vpp).showVersion), answer((*vpp).showThreads), answer((*vpp).cliInband),

		dump((*vpp).interfaceDump), changeInterface((*vpp).setFlags), changeInterface((*vpp).setMTU), changeInterface((*vpp).setTag),
		answer((*vpp).createLoopback), changeInterface((*vpp).deleteLoopback),
		on((*vpp).wantInterfaceEvents, &interfaces.WantInterfaceEventsReply{}, &interfaces.SwInterfaceEvent{}),
		answer((*vpp).createSubif), changeInterface((*vpp).deleteSubif),

		change((*vpp).setXconnect), dump((*vpp).xconnectDump), changeInterface((*vpp).setTagRewrite),
		answer((*vpp).bridgeAddDel), change((*vpp).setBridge), dump((*vpp).bridgeDump),
		answer((*vpp).bondCreate), changeInterface((*vpp).bondAddMember), change((*vpp).bondDetach),
		dump((*vpp).bondDump), dump((*vpp).memberDump),
		on((*vpp).lcpPairs, &lcp.LcpItfPairDetails{}, &lcp.LcpItfPairGetReply{}),

		changeInterface((*vpp).addressAddDel), dump((*vpp).addressDump), change((*vpp).setUnnumbered), dump((*vpp).unnumberedDump),
		change((*vpp).tableAddDel), changeInterface((*vpp).setTable), answer((*vpp).getTable),
		changeInterface((*vpp).enableIP6), answer((*vpp).linkLocal),
		answer((*vpp).routeLookup), change((*vpp).routeAddDel),

		answer((*vpp).vxlanAddDel), dump((*vpp).vxlanDump), answer((*vpp).geneveAddDel), dump((*vpp).geneveDump),
		// The message table contains a reply to the dumps of GRE tunnels, but VPP 25.10 never sends it. A client
		// must send a control_ping after the dump.
		answer((*vpp).greAddDel), dump((*vpp).greDump, &gre.GreTunnelDumpReply{}),
		answer((*vpp).greAddDelV2), dump((*vpp).greDumpV2, &gre.GreTunnelDumpV2Reply{}),

		answer((*vpp).policerAdd), change((*vpp).policerUpdate), change((*vpp).policerDel), dump((*vpp).policerDump),
		changeInterface((*vpp).policerInput), answer((*vpp).featureIsEnabled),
		answer((*vpp).classifyAddDelTable), change((*vpp).classifyAddDelSession), answer((*vpp).classifyTableIDs),
		answer((*vpp).classifyTableInfo), dump((*vpp).classifySessionDump),
		changeInterface((*vpp).policerClassifySet), dump((*vpp).policerClassifyDump),
		answer((*vpp).generatorCreate), changeInterface((*vpp).generatorDelete),

		change((*vpp).bfdEnableMultihop), change((*vpp).bfdAdd), change((*vpp).bfdMod), change((*vpp).bfdDel),
		change((*vpp).bfdSetFlags), dump((*vpp).bfdDump),
		on((*vpp).wantBFDEvents, &bfd.WantBfdEventsReply{}, &bfd.BfdUDPSessionEvent{}),
	}
}

// operation is a request that VPP handles, with the messages that it may send in reply.
type operation struct {
	request api.Message
	serve   func(*vpp, *call, api.Message)
	answers []api.Message
}

type pointer[T any] interface {
	*T
	api.Message
}

// on returns an operation. VPP is locked while serve runs.
func on[T any, P pointer[T]](serve func(*vpp, *call, P), answers ...api.Message) operation {
	return operation{
		request: P(new(T)),
		serve:   func(v *vpp, c *call, m api.Message) { serve(v, c, m.(P)) },
		answers: answers,
	}
}

// answer returns an operation with one reply. The function serve fills in the reply.
func answer[T, R any, P pointer[T], A pointer[R]](serve func(*vpp, P, A)) operation {
	return on(func(v *vpp, c *call, m P) {
		reply := A(new(R))
		serve(v, m, reply)
		c.reply(reply)
	}, A(new(R)))
}

// dump returns an operation that the function serve answers with any number of details. unsent are further
// messages in the message table.
func dump[T, D any, P pointer[T], A pointer[D]](serve func(*vpp, P, func(A)), unsent ...api.Message) operation {
	return on(func(v *vpp, c *call, m P) {
		serve(v, m, func(details A) { c.reply(details) })
	}, append(unsent, A(new(D)))...)
}

// change returns an operation whose reply has only the return code of the function serve.
func change[T any, P pointer[T]](serve func(*vpp, P) int32) operation {
	reply := registered[P(new(T)).GetMessageName()+"_reply"]
	return on(func(v *vpp, c *call, m P) {
		filled := newLike(reply)
		reflect.ValueOf(filled).Elem().FieldByName("Retval").SetInt(int64(serve(v, m)))
		c.reply(filled)
	}, reply)
}

// changeInterface does the same as change for a request whose field SwIfIndex names an existing interface.
func changeInterface[T any, P pointer[T]](serve func(*vpp, *iface, P) int32) operation {
	return change(func(v *vpp, m P) int32 {
		index := reflect.ValueOf(m).Elem().FieldByName("SwIfIndex").Uint()
		if i := v.at(interface_types.InterfaceIndex(index)); i != nil {
			return serve(v, i, m)
		}
		return retvalInvalidInterface
	})
}

// registered has the messages of govpp by name.
var registered = func() map[string]api.Message {
	byName := map[string]api.Message{}
	for _, messages := range api.GetRegisteredMessages() {
		for _, m := range messages {
			byName[m.GetMessageName()] = m
		}
	}
	return byName
}()

// sockclntCreateID is the ID of sockclnt_create. It is the only message ID that clients know before they
// get the table.
const sockclntCreateID = 15

// messageTable maps name_crc of a message to its ID. sockclnt_create_reply contains the table. A client must
// assume that VPP does not support a message that is missing in the table.
type messageTable struct {
	entries []memclnt.MessageTableEntry
	ids     map[string]uint16
	serving map[uint16]operation
}

// newMessageTable returns the table of all messages, except the omitted requests and their replies.
func newMessageTable(omitted []string) *messageTable {
	table := &messageTable{ids: map[string]uint16{}, serving: map[uint16]operation{}}
	absent := map[string]bool{}
	for _, name := range omitted {
		absent[name], absent[name+"_reply"] = true, true
	}
	add := func(m api.Message) (id uint16, served bool) {
		if absent[m.GetMessageName()] {
			return 0, false
		}
		if id, known := table.id(m); known {
			return id, true
		}
		id = uint16(sockclntCreateID + len(table.entries))
		table.ids[key(m)] = id
		table.entries = append(table.entries, memclnt.MessageTableEntry{Index: id, Name: key(m)})
		return id, true
	}
	for _, op := range operations() {
		if id, served := add(op.request); served {
			table.serving[id] = op
		}
		for _, answer := range op.answers {
			add(answer)
		}
	}
	return table
}

func key(m api.Message) string { return m.GetMessageName() + "_" + m.GetCrcString() }

// id returns the ID of a message. It returns false if the message was left out.
func (t *messageTable) id(m api.Message) (uint16, bool) {
	id, known := t.ids[key(m)]
	return id, known
}

// newLike returns an empty message of the same type as prototype.
func newLike(prototype api.Message) api.Message {
	return reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(api.Message)
}

// The return codes of the binary API. The source is VPP's vnet/error.h and vnet/api_errno.h.
const (
	retvalUnspecified              int32 = -1
	retvalInvalidInterface         int32 = -2
	retvalNoSuchFib                int32 = -3
	retvalNoSuchEntry              int32 = -6
	retvalInvalidValue             int32 = -7
	retvalInvalidRegistration      int32 = -31
	retvalVLANExists               int32 = -56
	retvalAddressNotFound          int32 = -60
	retvalIP6NotEnabled            int32 = -62
	retvalNoSuchTable              int32 = -65
	retvalInvalidMemorySize        int32 = -70
	retvalNotEthernet              int32 = -71
	retvalTagCount                 int32 = -72
	retvalInvalidArgument          int32 = -73
	retvalTunnelExists             int32 = -75
	retvalDecapNext                int32 = -76
	retvalInterfaceExists          int32 = -79
	retvalValueExists              int32 = -81
	retvalSameEndpoints            int32 = -82
	retvalClassifyTableNotFound    int32 = -91
	retvalInvalidSubInterface      int32 = -98
	retvalBFDExists                int32 = -101
	retvalBFDNoSuchEntry           int32 = -102
	retvalAddressFoundForInterface int32 = -114
	retvalBridgeExists             int32 = -119
	retvalBridgeInUse              int32 = -120
	retvalDuplicateAddress         int32 = -127
	retvalInstanceInUse            int32 = -147
	retvalInvalidProtocol          int32 = -153
)

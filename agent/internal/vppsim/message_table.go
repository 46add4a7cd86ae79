package vppsim

import (
	"reflect"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
)

// sockclntCreateID is the ID of sockclnt_create. It is the only message ID that clients know before they
// get the table.
const sockclntCreateID = 15

// operation is a request that VPP handles, with the messages that it may send in reply.
type operation struct {
	request api.Message
	serve   func(*vpp, *call, api.Message)
	answers []api.Message
}

// on returns an operation. VPP is locked while serve runs.
func on[T any, P interface {
	*T
	api.Message
}](serve func(*vpp, *call, P), answers ...api.Message) operation {
	return operation{
		request: P(new(T)),
		serve:   func(v *vpp, c *call, m api.Message) { serve(v, c, m.(P)) },
		answers: answers,
	}
}

// operations returns all operations, grouped by message family.
func operations() []operation {
	return slices.Concat(
		sessionOperations(), interfaceOperations(), eventOperations(), subifOperations(),
		l2Operations(), vtrOperations(), bridgeOperations(), bondOperations(), ipOperations(), ipUseOperations(), routeOperations(),
		vxlanOperations(), geneveOperations(), greOperations(), lcpOperations(), policerOperations(), classifierOperations(), generatorOperations(),
		bfdOperations(),
	)
}

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
	next := uint16(sockclntCreateID)
	add := func(m api.Message) (uint16, bool) {
		if absent[m.GetMessageName()] {
			return 0, false
		}
		key := m.GetMessageName() + "_" + m.GetCrcString()
		if id, known := table.ids[key]; known {
			return id, true
		}
		id := next
		next++
		table.ids[key] = id
		table.entries = append(table.entries, memclnt.MessageTableEntry{Index: id, Name: key})
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

// id returns the ID of a message. It returns false if the message was left out.
func (t *messageTable) id(m api.Message) (uint16, bool) {
	id, known := t.ids[m.GetMessageName()+"_"+m.GetCrcString()]
	return id, known
}

// newLike returns an empty message of the same type as prototype.
func newLike(prototype api.Message) api.Message {
	return reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(api.Message)
}

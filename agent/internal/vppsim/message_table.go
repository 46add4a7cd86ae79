package vppsim

import (
	"reflect"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
)

// sockclntCreateID is the only message ID that clients know before they have the table.
const sockclntCreateID = 15

// operation is a request that VPP serves, with its possible replies.
type operation struct {
	request api.Message
	serve   func(*vpp, *call, api.Message)
	answers []api.Message
}

// on declares an operation; serve runs with the VPP's lock held.
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

// operations returns all operations, one message family after the other.
func operations() []operation {
	return slices.Concat(
		sessionOperations(), interfaceOperations(), eventOperations(), subifOperations(),
		l2Operations(), vtrOperations(), bridgeOperations(), bondOperations(), ipOperations(), ipUseOperations(), routeOperations(),
		vxlanOperations(), geneveOperations(), greOperations(), lcpOperations(), policerOperations(), classifierOperations(), generatorOperations(),
		bfdOperations(),
	)
}

// messageTable maps name_crc to ID, as sockclnt_create_reply contains it. A client must treat a message
// that is not in it as absent.
type messageTable struct {
	entries []memclnt.MessageTableEntry
	ids     map[string]uint16
	serving map[uint16]operation
}

// newMessageTable omits the named requests and their replies.
func newMessageTable(without []string) *messageTable {
	table := &messageTable{ids: map[string]uint16{}, serving: map[uint16]operation{}}
	absent := map[string]bool{}
	for _, name := range without {
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

// id returns the ID of the message; false if it was omitted.
func (t *messageTable) id(m api.Message) (uint16, bool) {
	id, known := t.ids[m.GetMessageName()+"_"+m.GetCrcString()]
	return id, known
}

// newLike returns an empty message of the prototype's type.
func newLike(prototype api.Message) api.Message {
	return reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(api.Message)
}

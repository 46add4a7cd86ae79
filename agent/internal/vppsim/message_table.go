package vppsim

import (
	"reflect"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
)

// sockclntCreateID is the one message id every client knows before it has the table.
const sockclntCreateID = 15

// operation is a request VPP serves, with the messages it may answer.
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

// operations are all the requests served, one message family after the other.
func operations() []operation {
	return slices.Concat(
		sessionOperations(), interfaceOperations(), eventOperations(), subifOperations(),
		l2Operations(), vtrOperations(), bridgeOperations(), bondOperations(), ipOperations(), ipUseOperations(), routeOperations(),
		vxlanOperations(), geneveOperations(), greOperations(), lcpOperations(), policerOperations(), classifierOperations(), generatorOperations(),
		bfdOperations(),
	)
}

// messageTable maps name_crc to id, as sockclnt_create_reply carries it. What a client does
// not find in it, it must take for absent.
type messageTable struct {
	entries []memclnt.MessageTableEntry
	ids     map[string]uint16
	serving map[uint16]operation
}

// newMessageTable leaves out the named requests and their replies.
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

// id is the message's place in the table; false when it was left out.
func (t *messageTable) id(m api.Message) (uint16, bool) {
	id, known := t.ids[m.GetMessageName()+"_"+m.GetCrcString()]
	return id, known
}

// newLike makes an empty message of the prototype's type.
func newLike(prototype api.Message) api.Message {
	return reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(api.Message)
}

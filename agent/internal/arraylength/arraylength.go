// Package arraylength checks messages of VPP before they are decoded. govpp allocates as many elements of
// an array as a message claims to have, up to 4 GiB, before it checks that they exist.
package arraylength

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"
)

// Check returns an error if the last member of a message is an array with fewer elements than its length
// field says. header is the number of bytes before the message's members: 10 for a request, 6 for a reply.
func Check(data []byte, header int, msg api.Message) error {
	element := 1
	switch msg.(type) {
	case *classify.ClassifyAddDelTable, *classify.ClassifyAddDelSession, *classify.ClassifyTableInfoReply, *classify.ClassifySessionDetails:
	case *classify.ClassifyTableIdsReply:
		element = 4
	default:
		return nil
	}
	fixed := reflect.New(reflect.TypeOf(msg).Elem()).Interface().(interface{ Size() int }).Size() // with an empty array
	available := len(data) - header - fixed
	if available < 0 {
		return fmt.Errorf("%s is cut off", msg.GetMessageName())
	}
	if claimed := binary.BigEndian.Uint32(data[header+fixed-4:]); uint64(claimed)*uint64(element) > uint64(available) {
		return fmt.Errorf("%s has %d bytes for an array of %d elements", msg.GetMessageName(), available, claimed)
	}
	return nil
}

package vpp

import (
	"encoding/binary"
	"errors"
	"testing"

	"go.fd.io/govpp/binapi/classify"
	"go.fd.io/govpp/codec"
)

// answer returns a reply whose last four bytes, before 16 of its array, contain another number.
func answer(t *testing.T, retval int32) []byte {
	t.Helper()
	data, err := codec.EncodeMsg(&classify.ClassifyTableInfoReply{Retval: retval, MaskLength: 16, Mask: make([]byte, 16)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(data[len(data)-16-4:], 1<<31)
	return data
}

func TestARefusalFollowedByRandomBytesIsARefusal(t *testing.T) {
	reply := &classify.ClassifyTableInfoReply{MaskLength: 7, Mask: make([]byte, 7)}
	if err := decode(answer(t, -20), reply); err != nil || reply.Retval != -20 || reply.Mask != nil {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestAMissingArrayIsNotAllocated(t *testing.T) {
	if err := decode(answer(t, 0), new(classify.ClassifyTableInfoReply)); !errors.Is(err, ErrProtocol) {
		t.Errorf("%v", err)
	}
	if err := decode(answer(t, 0)[:8], new(classify.ClassifyTableInfoReply)); !errors.Is(err, ErrProtocol) {
		t.Errorf("cut off: %v", err)
	}
}

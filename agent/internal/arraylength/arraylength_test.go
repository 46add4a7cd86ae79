package arraylength

import (
	"encoding/binary"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/classify"
	"go.fd.io/govpp/codec"
)

var messages = []struct {
	header  int
	message api.Message
}{
	{10, &classify.ClassifyAddDelTable{MaskLen: 16, Mask: make([]byte, 16)}},
	{10, &classify.ClassifyAddDelSession{MatchLen: 16, Match: make([]byte, 16)}},
	{6, &classify.ClassifyTableInfoReply{MaskLength: 16, Mask: make([]byte, 16)}},
	{6, &classify.ClassifySessionDetails{MatchLength: 16, Match: make([]byte, 16)}},
	{6, &classify.ClassifyTableIdsReply{Count: 4, Ids: make([]uint32, 4)}},
}

func TestAnArrayShorterThanItsLengthFieldIsAnError(t *testing.T) {
	for _, c := range messages {
		whole, err := codec.EncodeMsg(c.message, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(whole, c.header, c.message); err != nil {
			t.Error(err)
		}
		for length := range whole {
			if Check(whole[:length], c.header, c.message) == nil {
				t.Errorf("%s of %d bytes is taken for whole", c.message.GetMessageName(), length)
			}
		}
		binary.BigEndian.PutUint32(whole[len(whole)-16-4:], 1<<32-1)
		if Check(whole, c.header, c.message) == nil {
			t.Errorf("%s claims to have 4 GiB", c.message.GetMessageName())
		}
	}
}

func TestMessagesWithoutATrailingArrayAreNotChecked(t *testing.T) {
	if err := Check(nil, 10, &classify.ClassifyTableIds{}); err != nil {
		t.Error(err)
	}
}

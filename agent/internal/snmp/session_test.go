package snmp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/posteo/go-agentx/pdu"
)

// answers are what a session says to a packet of a master, empty where it says nothing, and why it ends after it, if it does.
func answers(t *testing.T, header pdu.Header, payload []byte) (pdu.Type, []byte, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	r := newRouter()
	s := &session{conn: ours, table: r.interfaces().table, upSince: r.now}
	ended := make(chan error, 1)
	go func() { ended <- s.serve(); ours.Close() }()
	header.Version, header.PayloadLength = 1, uint32(len(payload))
	first, err := header.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	_ = theirs.SetDeadline(time.Now().Add(10 * time.Second))
	for at := range first { // a stream need not come as it was sent
		if _, err := theirs.Write(first[at : at+1]); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = theirs.Write(payload) // who is refused by his header is not read on
	_ = theirs.SetDeadline(time.Now().Add(300 * time.Millisecond))
	var said [pdu.HeaderSize]byte
	if _, err := io.ReadFull(theirs, said[:]); err != nil {
		select {
		case why := <-ended:
			return 0, nil, why
		default:
			return 0, nil, nil
		}
	}
	answer := &pdu.Header{}
	if err := answer.UnmarshalBinary(said[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, answer.PayloadLength)
	if _, err := io.ReadFull(theirs, body); err != nil {
		t.Fatal(err)
	}
	return answer.Type, body, nil
}

func TestWhatIsNoAgentXEndsTheSessionAndNotTheAgent(t *testing.T) {
	for name, c := range map[string]struct {
		header  pdu.Header
		payload []byte
	}{
		"a Get that ends too early":     {pdu.Header{Type: pdu.TypeGet}, []byte{11, 2, 0, 0, 1}},
		"a GetNext of one byte":         {pdu.Header{Type: pdu.TypeGetNext}, []byte{11}},
		"another order of bytes":        {pdu.Header{Type: pdu.TypeGet, Flags: pdu.FlagNetworkByteOrder}, nil},
		"more than a question ever has": {pdu.Header{Type: pdu.TypeGet}, make([]byte, maxPayload+1)},
	} {
		if kind, _, err := answers(t, c.header, c.payload); !errors.Is(err, errUndecodable) {
			t.Errorf("%s: %s, %v", name, kind, err)
		}
	}
	if _, _, err := answers(t, pdu.Header{Type: pdu.TypeClose}, []byte{5, 0, 0, 0}); !errors.Is(err, errClosed) {
		t.Errorf("Close: %v", err)
	}
}

func TestWhatIsNotSupportedIsRefused(t *testing.T) {
	for kind, want := range map[pdu.Type]pdu.Error{
		pdu.TypeTestSet: notWritable, pdu.TypeCommitSet: pdu.ErrorProcessing, pdu.TypeGetBulk: pdu.ErrorProcessing, pdu.TypePing: pdu.ErrorProcessing,
	} {
		said, body, err := answers(t, pdu.Header{Type: kind, SessionID: 7, PacketID: 9}, nil)
		if err != nil || said != pdu.TypeResponse || len(body) < 8 || !bytes.Equal(body[4:6], []byte{byte(want), byte(want >> 8)}) {
			t.Errorf("%s: %s % x, %v", kind, said, body, err)
		}
	}
	if said, _, err := answers(t, pdu.Header{Type: pdu.TypeCleanupSet}, nil); said != 0 || err != nil {
		t.Errorf("CleanupSet is answered: %s, %v", said, err)
	}
}

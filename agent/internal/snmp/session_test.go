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

// packet is a packet of the master.
type packet struct {
	header  pdu.Header
	payload []byte
}

// answerOf returns the session's first response to these packets, or the error that ended it.
func answerOf(t *testing.T, packets ...packet) (*pdu.Header, []byte, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	r := newRouter()
	s := &session{conn: ours, table: r.interfaces().table, upSince: r.now}
	ended := make(chan error, 1)
	go func() { ended <- s.serve(); ours.Close() }()
	_ = theirs.SetDeadline(time.Now().Add(20 * time.Second))
	go func() {
		for _, p := range packets {
			p.header.Version, p.header.PayloadLength = 1, uint32(len(p.payload))
			first, _ := p.header.MarshalBinary()
			for _, b := range append(first, p.payload...) { // a stream may deliver single bytes
				if _, err := theirs.Write([]byte{b}); err != nil {
					return // a session that refused a packet reads no more
				}
			}
		}
	}()
	said := make([]byte, pdu.HeaderSize)
	if _, err := io.ReadFull(theirs, said); err != nil {
		return nil, nil, <-ended
	}
	header := &pdu.Header{}
	if err := header.UnmarshalBinary(said); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, header.PayloadLength)
	if _, err := io.ReadFull(theirs, body); err != nil {
		t.Fatal(err)
	}
	return header, body, nil
}

func TestUndecodablePacketEndsOnlyTheSession(t *testing.T) {
	for name, c := range map[string]packet{
		"a Get that ends too early":     {pdu.Header{Type: pdu.TypeGet}, []byte{11, 2, 0, 0, 1}},
		"a GetNext of one byte":         {pdu.Header{Type: pdu.TypeGetNext}, []byte{11}},
		"another order of bytes":        {pdu.Header{Type: pdu.TypeGet, Flags: pdu.FlagNetworkByteOrder}, nil},
		"more than a question ever has": {pdu.Header{Type: pdu.TypeGet}, make([]byte, maxPayload+1)},
	} {
		if header, _, err := answerOf(t, c); !errors.Is(err, errUndecodable) {
			t.Errorf("%s: %v, %v", name, header, err)
		}
	}
	if _, _, err := answerOf(t, packet{pdu.Header{Type: pdu.TypeClose}, []byte{5, 0, 0, 0}}); !errors.Is(err, errClosed) {
		t.Errorf("Close: %v", err)
	}
}

func TestUnsupportedRequestsAreRefused(t *testing.T) {
	for kind, want := range map[pdu.Type]pdu.Error{
		pdu.TypeTestSet: notWritable, pdu.TypeCommitSet: pdu.ErrorProcessing, pdu.TypeGetBulk: pdu.ErrorProcessing, pdu.TypePing: pdu.ErrorProcessing,
	} {
		cleanup := packet{pdu.Header{Type: pdu.TypeCleanupSet, PacketID: 8}, nil} // has no response
		header, body, err := answerOf(t, cleanup, packet{pdu.Header{Type: kind, SessionID: 7, PacketID: 9}, nil})
		if err != nil || header.Type != pdu.TypeResponse || header.SessionID != 7 || header.PacketID != 9 {
			t.Errorf("%s: %v, %v", kind, header, err)
		} else if len(body) < 8 || !bytes.Equal(body[4:6], []byte{byte(want), byte(want >> 8)}) {
			t.Errorf("%s: % x, want %d", kind, body, want)
		}
	}
}

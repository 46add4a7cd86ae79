package snmp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/posteo/go-agentx/pdu"
)

const (
	// answerWithin is how long the master waits for an answer of ours, and we for one of it.
	answerWithin = 5 * time.Second
	// preferred goes before snmpd's own tables, which have 127 as AgentX has by default: the smaller one wins.
	preferred = 100
	// maxPayload is far more than a question ever has (bytes).
	maxPayload = 1 << 20
)

var (
	errClosed      = errors.New("agentx: the master closed the session")
	errUndecodable = errors.New("agentx: the master sent what is no AgentX")
)

// session is one connection to the master agent. Of the library it has the encoding alone: the library's own client ends
// the program when a connection breaks otherwise than by its end (docs/adr/0048-serve-interfaces-to-snmpd-as-agentx-subagent.md).
type session struct {
	conn     net.Conn
	id       uint32
	packetID uint32
	upSince  time.Time
	table    func(upSince time.Time) *Table
}

// dial connects; begin comes next.
func dial(ctx context.Context, socket string, table func(upSince time.Time) *Table) (*session, error) {
	conn, err := (&net.Dialer{Timeout: answerWithin}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("agentx: %w", err)
	}
	return &session{conn: conn, table: table}, nil
}

// begin opens the session and registers for the tables.
func (s *session) begin(name string, now func() time.Time) error {
	if err := s.conn.SetReadDeadline(time.Now().Add(answerWithin)); err != nil {
		return err
	}
	request := &pdu.Open{Timeout: pdu.Timeout{Duration: answerWithin}, Description: pdu.OctetString{Text: name}}
	header, upTime, err := s.ask(request)
	if err != nil {
		return fmt.Errorf("agentx: open: %w", err)
	}
	s.id, s.upSince = header.SessionID, now().Add(-upTime)
	for _, subtree := range registered {
		request := &pdu.Register{Timeout: pdu.Timeout{Priority: preferred}}
		request.Subtree.SetIdentifier(subtree)
		if _, _, err := s.ask(request); err != nil {
			return fmt.Errorf("agentx: register %s: %w", subtree, err)
		}
	}
	return s.conn.SetReadDeadline(time.Time{})
}

// ask sends a request and awaits its answer. Questions that come meanwhile are answered.
func (s *session) ask(request pdu.Packet) (*pdu.Header, time.Duration, error) {
	s.packetID++
	if err := s.send(&pdu.Header{SessionID: s.id, PacketID: s.packetID}, request); err != nil {
		return nil, 0, err
	}
	for {
		header, payload, err := s.receive()
		if err != nil {
			return nil, 0, err
		}
		if header.Type != pdu.TypeResponse {
			if err := s.answer(header, payload); err != nil {
				return nil, 0, err
			}
			continue
		}
		if len(payload) < 8 || header.PacketID != s.packetID {
			return nil, 0, errUndecodable
		}
		upTime := time.Duration(binary.LittleEndian.Uint32(payload)) * 10 * time.Millisecond
		if refused := pdu.Error(binary.LittleEndian.Uint16(payload[4:])); refused != pdu.ErrorNone {
			return nil, 0, errors.New(refused.String())
		}
		return header, upTime, nil
	}
}

// serve answers until the master ends the session or the connection breaks.
func (s *session) serve() error {
	for {
		header, payload, err := s.receive()
		if err != nil {
			return err
		}
		if err := s.answer(header, payload); err != nil {
			return err
		}
	}
}

func (s *session) send(header *pdu.Header, packet pdu.Packet) error {
	data, err := (&pdu.HeaderPacket{Header: header, Packet: packet}).MarshalBinary()
	if err != nil {
		return err
	}
	_, err = s.conn.Write(data)
	return err
}

func (s *session) receive() (*pdu.Header, []byte, error) {
	var first [pdu.HeaderSize]byte
	if _, err := io.ReadFull(s.conn, first[:]); errors.Is(err, io.EOF) {
		return nil, nil, errClosed
	} else if err != nil {
		return nil, nil, err
	}
	header := &pdu.Header{}
	if err := header.UnmarshalBinary(first[:]); err != nil {
		return nil, nil, err
	}
	// A master writes as its machine does, which is ours; net-snmp says so by leaving the flag away.
	if header.Version != 1 || header.Flags&pdu.FlagNetworkByteOrder != 0 || header.PayloadLength > maxPayload {
		return nil, nil, errUndecodable
	}
	payload := make([]byte, header.PayloadLength)
	_, err := io.ReadFull(s.conn, payload)
	return header, payload, err
}

// notWritable is what a subagent says to a set of what nobody may set (RFC 2741, section 7.2.4.1).
const notWritable pdu.Error = 17

// answer answers one question.
func (s *session) answer(header *pdu.Header, payload []byte) error {
	response := &pdu.Response{}
	switch header.Type {
	case pdu.TypeGet, pdu.TypeGetNext:
		ranges, err := decodeRanges(payload)
		if err != nil {
			return err
		}
		table := s.table(s.upSince)
		response.Variables = make(pdu.Variables, 0, len(ranges))
		for _, r := range ranges {
			response.Variables = append(response.Variables, answerTo(table, header.Type, r))
		}
	case pdu.TypeTestSet:
		response.Error, response.Index = notWritable, 1
	case pdu.TypeCleanupSet:
		return nil // has no answer
	case pdu.TypeClose:
		return errClosed
	case pdu.TypeResponse:
		return nil // of what nobody waits for any more
	default:
		response.Error = pdu.ErrorProcessing
	}
	return s.send(&pdu.Header{SessionID: header.SessionID, TransactionID: header.TransactionID, PacketID: header.PacketID}, response)
}

func answerTo(table *Table, kind pdu.Type, r pdu.Range) pdu.Variable {
	from := r.From.GetIdentifier()
	if kind == pdu.TypeGet {
		return table.get(from)
	}
	return table.next(from, r.From.GetInclude(), r.To.GetIdentifier())
}

// decodeRanges reads what is asked for. Get and GetNext look alike; the library reads only one object of a Get, and panics
// where a payload ends too early. Contexts are not used: the flag for one stands for a payload of another form, which fails.
func decodeRanges(payload []byte) (ranges pdu.Ranges, err error) {
	defer func() {
		if recover() != nil {
			err = errUndecodable
		}
	}()
	if ranges.UnmarshalBinary(payload) != nil {
		return nil, errUndecodable
	}
	return ranges, nil
}

// Package snmp provides VPP's interfaces to an SNMP agent: ifTable and ifXTable of the IF-MIB (RFC 2863).
// It is a subagent (AgentX, RFC 2741) of Net-SNMP's snmpd, which serves SNMP clients.
package snmp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/posteo/go-agentx/pdu"
)

const (
	// replyTimeout is the time for which the master waits for a response of the subagent, and for which the
	// subagent waits for a response of the master.
	replyTimeout = 5 * time.Second
	// preferred is the priority with which the subagent registers its tables. A lower number has precedence
	// over a higher number. snmpd's own tables have AgentX's default of 127.
	preferred = 100
	// maxPayload is the largest accepted payload (bytes). It is far larger than any request.
	maxPayload = 1 << 20
)

var (
	errClosed      = errors.New("agentx: the master closed the session")
	errUndecodable = errors.New("agentx: the master sent a packet that is not AgentX")
)

// session is one connection to the master agent. It uses the library only to encode and decode packets. The
// library's own client terminates the program when a connection breaks without a normal end
// (docs/adr/0048-serve-interfaces-to-snmpd-as-agentx-subagent.md).
type session struct {
	conn     net.Conn
	id       uint32
	packetID uint32
	upSince  time.Time
	table    func(upSince time.Time) *Table
}

// dial connects to the master. Call begin before any other method of the session.
func dial(ctx context.Context, socket string, table func(upSince time.Time) *Table) (*session, error) {
	conn, err := (&net.Dialer{Timeout: replyTimeout}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("agentx: %w", err)
	}
	return &session{conn: conn, table: table}, nil
}

// begin opens the session and registers the tables.
func (s *session) begin(name string, now func() time.Time) error {
	if err := s.conn.SetReadDeadline(time.Now().Add(replyTimeout)); err != nil {
		return err
	}
	request := &pdu.Open{Timeout: pdu.Timeout{Duration: replyTimeout}, Description: pdu.OctetString{Text: name}}
	header, upTime, err := s.request(request)
	if err != nil {
		return fmt.Errorf("agentx: open: %w", err)
	}
	s.id, s.upSince = header.SessionID, now().Add(-upTime)
	for _, subtree := range registered {
		request := &pdu.Register{Timeout: pdu.Timeout{Priority: preferred}}
		request.Subtree.SetIdentifier(subtree)
		if _, _, err := s.request(request); err != nil {
			return fmt.Errorf("agentx: register %s: %w", subtree, err)
		}
	}
	return s.conn.SetReadDeadline(time.Time{})
}

// request sends a packet and waits for the response to this packet. Meanwhile it answers requests of the
// master.
func (s *session) request(packet pdu.Packet) (*pdu.Header, time.Duration, error) {
	s.packetID++
	if err := s.send(&pdu.Header{SessionID: s.id, PacketID: s.packetID}, packet); err != nil {
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

// serve answers requests until the master ends the session or the connection breaks.
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
	// The master runs on the same machine and uses the machine's byte order. So net-snmp does not set the
	// flag for network byte order.
	if header.Version != 1 || header.Flags&pdu.FlagNetworkByteOrder != 0 || header.PayloadLength > maxPayload {
		return nil, nil, errUndecodable
	}
	payload := make([]byte, header.PayloadLength)
	_, err := io.ReadFull(s.conn, payload)
	return header, payload, err
}

// notWritable is the response to a set of an object that is read-only (RFC 2741, section 7.2.4.1).
const notWritable pdu.Error = 17

// answer answers one request.
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
		return nil // has no response
	case pdu.TypeClose:
		return errClosed
	case pdu.TypeResponse:
		return nil // a response for which no request waits any more
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

// decodeRanges decodes the requested objects. Get and GetNext requests have the same form, but the library
// reads only one object of a Get request. The library panics if a payload is too short; decodeRanges then
// returns errUndecodable. The subagent does not support contexts: a packet with the context flag has another
// form and cannot be decoded.
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

// Subagent keeps a session with a master agent.
type Subagent struct {
	Socket     string // path of the master's Unix socket
	Name       string // identifies the agent in the master's log
	Interfaces *Interfaces
	Log        *slog.Logger
}

// retryInterval is the pause between attempts to connect. A restart of snmpd takes about a second.
const retryInterval = 2 * time.Second

// Run serves the master until ctx ends. If there is no master, Run tries again after retryInterval. The rest
// of the agent works without a master.
func (a *Subagent) Run(ctx context.Context) {
	logged := ""
	for ctx.Err() == nil {
		err := a.serve(ctx, func() { logged = "" })
		if ctx.Err() != nil {
			return
		}
		if why := err.Error(); why != logged { // attempts are frequent, so the agent does not log the same error again
			a.Log.Warn("SNMP does not answer for VPP's interfaces; the agent keeps trying", "socket", a.Socket, "error", why)
			logged = why
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
	}
}

func (a *Subagent) serve(ctx context.Context, opened func()) error {
	s, err := dial(ctx, a.Socket, a.Interfaces.table)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	defer context.AfterFunc(ctx, func() { s.conn.Close() })() // the master detects the end of the session
	if err := s.begin(a.Name, a.Interfaces.Now); err != nil {
		return err
	}
	opened()
	a.Log.Info("SNMP answers for VPP's interfaces", "socket", a.Socket)
	return s.serve()
}

package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/packettrace"
)

const (
	mostTraced       = 50 // packets
	longestTrace     = 30 // seconds
	traceNoneIsShown = "the body is not {schema: 1, of, packets, seconds}; nothing was done"
)

type traceRequest struct {
	Schema  int    `json:"schema"`
	Of      string `json:"of"`
	Packets int    `json:"packets"`
	Seconds int    `json:"seconds"`
}

type tracedNodeBody struct {
	Node string   `json:"node"`
	Says []string `json:"says"`
}

type tracedPacketBody struct {
	At    string           `json:"at"`   // time since VPP's start
	From  string           `json:"from"` // the interface of the line where the packet arrived
	Nodes []tracedNodeBody `json:"nodes"`
}

type traceBody struct {
	Schema   int                `json:"schema"`
	Router   string             `json:"router"`
	VLL      string             `json:"vll"`
	Examined int                `json:"looked"` // number of packets that the tracer captured, of this line and of other lines
	Packets  []tracedPacketBody `json:"packets"`
}

func (s *Server) postTrace(w http.ResponseWriter, r *http.Request) {
	takeRequest(s, w, r, decodeTrace, func(requested *traceRequest) {
		named, unnamed := s.lineNamed(r.Context(), requested.Of)
		if unnamed != nil {
			unnamed.write(w)
			return
		}
		found, err := s.engine.Trace(r.Context(), named.vll, requested.Packets, time.Duration(requested.Seconds)*time.Second)
		if err != nil {
			s.log.Warn("no trace", "error", err)
			failedTrace(err).write(w)
			return
		}
		shown := traceBody{Schema: 1, Router: s.router, VLL: named.vll, Examined: found.Examined, Packets: []tracedPacketBody{}}
		for _, packet := range found.Packets {
			body := tracedPacketBody{At: packet.At, From: packet.From}
			for _, node := range packet.Nodes {
				body.Nodes = append(body.Nodes, tracedNodeBody{node.Name, node.Says})
			}
			shown.Packets = append(shown.Packets, body)
		}
		writeJSON(w, shown)
	})
}

func decodeTrace(body []byte) (*traceRequest, *problem) {
	invalid := func(detail string) (*traceRequest, *problem) {
		return nil, &problem{Type: "invalid-trace", Title: "The request is not valid", Status: http.StatusUnprocessableEntity, Detail: detail}
	}
	var requested traceRequest
	switch err := decodeStrictly(body, &requested); {
	case err != nil || requested.Schema != 1:
		return invalid(traceNoneIsShown)
	case requested.Packets < 1 || requested.Packets > mostTraced:
		return invalid(fmt.Sprintf("packets: %d is not in 1..%d", requested.Packets, mostTraced))
	case requested.Seconds < 1 || requested.Seconds > longestTrace:
		return invalid(fmt.Sprintf("seconds: %d is not in 1..%d", requested.Seconds, longestTrace))
	}
	return &requested, nil
}

func failedTrace(err error) problem {
	var inUse *packettrace.InUseError
	var cannot *packettrace.CannotError
	var left *packettrace.LeftError
	var nothing *converge.NotTestingError
	conflict := func(code, title string) problem { return conflictOf(err, code, title) }
	switch {
	case errors.Is(err, converge.ErrTracing), errors.As(err, &inUse):
		return conflict("tracer-in-use", "The tracer is in use")
	case errors.As(err, &cannot):
		return conflict("cannot-trace", "Nothing can be traced here")
	case errors.As(err, &left):
		return conflict("trace-left", "Something is left in VPP's tracer")
	case errors.As(err, &nothing):
		return conflict("not-traced", "Nothing was traced")
	}
	return unavailable(err)
}

package server

import (
	"errors"
	"net/http"

	"longline.dev/agent/internal/activationtest"
	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/roundtrip"
	"longline.dev/agent/internal/vpp"
)

type testCountersBody struct {
	AtMS        int64  `json:"at_ms"`
	RxPackets   uint64 `json:"rx_packets"`
	TxPackets   uint64 `json:"tx_packets"`
	Fragmented  uint64 `json:"fragmented"`
	Reassembled uint64 `json:"reassembled"`
}

type testFramesBody struct {
	Schema       int              `json:"schema"`
	Router       string           `json:"router"`
	VLL          string           `json:"vll"`
	End          string           `json:"end"`
	Revision     int32            `json:"revision"`
	Sent         int              `json:"sent"`
	Counters     testCountersBody `json:"counters"`
	VPPVersion   string           `json:"vpp_version"`
	AgentVersion string           `json:"agent_version"`
}

func (s *Server) postTestFrames(w http.ResponseWriter, r *http.Request) {
	takeRequest(s, w, r, testDecoder(intent.DecodeTestFrames), func(requested *intent.TestFrames) { s.sendTestFrames(w, r, requested) })
}

// testDecoder returns a decoder that turns the errors of decode into responses.
func testDecoder[T any](decode func([]byte) (*T, error)) func([]byte) (*T, *problem) {
	return func(body []byte) (*T, *problem) {
		requested, err := decode(body)
		if err != nil {
			refusal := invalidTest(err)
			return nil, &refusal
		}
		return requested, nil
	}
}

// invalidTest returns the response to a request that cannot be decoded.
func invalidTest(err error) problem {
	refusal := problem{Type: "invalid-test", Title: "The test is not valid", Status: http.StatusUnprocessableEntity, Detail: "nothing was sent"}
	var malformed *intent.MalformedError
	var invalid *intent.InvalidError
	switch {
	case errors.As(err, &malformed):
		refusal.Errors = []intent.Error{{Code: "malformed_json", Detail: malformed.Detail}}
	case errors.As(err, &invalid):
		refusal.Errors = invalid.Errors
	}
	return refusal
}

func (s *Server) sendTestFrames(w http.ResponseWriter, r *http.Request, requested *intent.TestFrames) {
	s.log.Info("test frames", "end", requested.Key.String(), "revision", requested.Revision, "frame", requested.Frame, "count", requested.Count,
		"request_ids", requestIDs(r.Header))
	result, err := s.engine.SendTestFrames(r.Context(), requested)
	if err != nil {
		failedTest(err).write(w)
		return
	}
	c := result.Counters
	writeJSON(w, testFramesBody{
		1, s.router, requested.VLL, requested.End, requested.Revision, result.Sent,
		testCountersBody{result.AtMS, c.Rx, c.Tx, c.Fragmented, c.Reassembled}, result.VPP.Version, s.version,
	})
}

// failedTest returns the response to a request that could not be carried out.
func failedTest(err error) problem {
	var notTesting *converge.NotTestingError
	var tooLong *converge.FrameTooLongError
	var cannotSend *activationtest.CannotError
	var cannotTime *roundtrip.CannotError
	var refused *vpp.RefusedError
	var frozen *converge.FrozenError
	conflict := func(code, title string) problem { return conflictOf(err, code, title) }
	switch {
	case errors.As(err, &frozen):
		return frozenProblem(frozen)
	case errors.As(err, &tooLong):
		return invalidTest(&intent.InvalidError{Errors: []intent.Error{{Pointer: "/frame", Code: "out_of_range", Detail: err.Error()}}})
	case errors.As(err, &notTesting):
		return conflict("not-testing", "The line is not being tested here")
	case errors.As(err, &cannotSend):
		return conflict("cannot-test", "This VPP sends no test frames")
	case errors.As(err, &cannotTime):
		return conflict("cannot-test", "This VPP measures no round trips")
	case errors.As(err, &refused):
		return conflict("vpp-refused", "VPP did not do it")
	default:
		return unavailable(err)
	}
}

type roundTripsBody struct {
	Schema   int    `json:"schema"`
	Router   string `json:"router"`
	VLL      string `json:"vll"`
	End      string `json:"end"`
	Revision int32  `json:"revision"`
	Sent     int    `json:"sent"`
	Received int    `json:"received"`
	MinUS    int64  `json:"min_us"`
	AvgUS    int64  `json:"avg_us"`
	MaxUS    int64  `json:"max_us"`
}

func (s *Server) postRoundTrips(w http.ResponseWriter, r *http.Request) {
	takeRequest(s, w, r, testDecoder(intent.DecodeRoundTrip), func(requested *intent.RoundTrip) { s.measureRoundTrip(w, r, requested) })
}

func (s *Server) measureRoundTrip(w http.ResponseWriter, r *http.Request, requested *intent.RoundTrip) {
	times, err := s.engine.MeasureRoundTrip(r.Context(), requested)
	if err != nil {
		failedTest(err).write(w)
		return
	}
	writeJSON(w, roundTripsBody{
		1, s.router, requested.VLL, requested.End, requested.Revision, times.Sent, times.Received,
		times.Min.Microseconds(), times.Avg.Microseconds(), times.Max.Microseconds(),
	})
}

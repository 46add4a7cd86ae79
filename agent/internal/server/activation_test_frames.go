package server

import (
	"errors"
	"net/http"

	"longline.dev/agent/internal/activationtest"
	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/roundtrip"
)

type testCountersBody struct {
	AtMS        int64  `json:"at_ms"`
	RxPackets   uint64 `json:"rx_packets"`
	TxPackets   uint64 `json:"tx_packets"`
	Fragmented  uint64 `json:"fragmented"`
	Reassembled uint64 `json:"reassembled"`
}

type testFramesBody struct {
	Schema int    `json:"schema"`
	Router string `json:"router"`
	intent.Key
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
			return nil, new(invalidTest(err))
		}
		return requested, nil
	}
}

func invalidTest(err error) problem {
	refusal := unprocessable("invalid-test", "The test is not valid", "nothing was sent")
	if malformed, is := errors.AsType[*intent.MalformedError](err); is {
		refusal.Errors = []intent.Error{{Code: "malformed_json", Detail: malformed.Detail}}
	} else if invalid, is := errors.AsType[*intent.InvalidError](err); is {
		refusal.Errors = invalid.Errors
	}
	return *refusal
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
		1, s.router, requested.Key, requested.Revision, result.Sent,
		testCountersBody{result.AtMS, c.Rx, c.Tx, c.Fragmented, c.Reassembled}, result.VPP.Version, s.version,
	})
}

func failedTest(err error) problem {
	if _, tooLong := errors.AsType[*converge.FrameTooLongError](err); tooLong {
		return invalidTest(&intent.InvalidError{Errors: []intent.Error{{Pointer: "/frame", Code: "out_of_range", Detail: err.Error()}}})
	}
	return problemOf(err, frozen, vppRefused,
		conflictBy[*converge.NotTestingError]("not-testing", "The line is not being tested here"),
		conflictBy[*activationtest.CannotError]("cannot-test", "This VPP sends no test frames"),
		conflictBy[*roundtrip.CannotError]("cannot-test", "This VPP measures no round trips"))
}

type roundTripsBody struct {
	Schema int    `json:"schema"`
	Router string `json:"router"`
	intent.Key
	Revision int32 `json:"revision"`
	Sent     int   `json:"sent"`
	Received int   `json:"received"`
	MinUS    int64 `json:"min_us"`
	AvgUS    int64 `json:"avg_us"`
	MaxUS    int64 `json:"max_us"`
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
		1, s.router, requested.Key, requested.Revision, times.Sent, times.Received,
		times.Min.Microseconds(), times.Avg.Microseconds(), times.Max.Microseconds(),
	})
}

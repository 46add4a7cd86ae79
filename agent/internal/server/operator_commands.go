package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"longline.dev/agent/internal/activationtest"
	"longline.dev/agent/internal/calibration"
	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/ownership"
	"longline.dev/agent/internal/packettrace"
	"longline.dev/agent/internal/plan"
	"longline.dev/agent/internal/report"
	"longline.dev/agent/internal/roundtrip"
)

// An operator decides through the control socket about interfaces whose tag another user has cleared or
// replaced.

type claimOrReleaseBody struct {
	intent.Key
	Interface string `json:"interface"` // "" for all
}

// RelabelledBody is an interface whose tag another user has cleared or replaced.
type RelabelledBody struct {
	intent.Key
	Kind      string `json:"kind"`
	Interface string `json:"interface"`
	SwIfIndex uint32 `json:"sw_if_index"`
	Tag       string `json:"tag"`
}

func relabelledOf(interfaces []*plan.EndInterface) []RelabelledBody {
	bodies := []RelabelledBody{}
	for _, h := range interfaces {
		bodies = append(bodies, RelabelledBody{h.End, h.Kind(), h.Interface.Name, h.Interface.Index, h.Interface.Tag})
	}
	return bodies
}

// DecidedBody is the response to a claim or a release.
type DecidedBody struct {
	Schema     int              `json:"schema"`
	Router     string           `json:"router"`
	Relabelled []RelabelledBody `json:"relabelled"` // the interfaces as they were before the decision
}

// claimOrRelease handles a claim or a release. The engine's method in the argument do carries it out.
func (s *Server) claimOrRelease(
	do func(context.Context, intent.Key, string) ([]*plan.EndInterface, error),
) func(*http.Request, *claimOrReleaseBody) (any, *problem) {
	return func(r *http.Request, requested *claimOrReleaseBody) (any, *problem) {
		end, name := requested.Key, requested.Interface
		found, err := do(r.Context(), end, name)
		refusal := conflictOf(err, frozen,
			conflictBy[*converge.NotRelabelledError]("not-relabelled", "Nothing to decide"),
			conflictBy[*converge.NotClaimedError]("vpp-refused", "VPP did not do it"))
		switch {
		case refusal != nil:
			return nil, refusal
		case errors.Is(err, converge.ErrNoVPP), errors.Is(err, converge.ErrStopping):
			return nil, unavailable(err)
		case err != nil:
			s.log.Error("not decided", "end", end.String(), "interface", name, "error", err)
			return nil, internalError("not-done", "It was not done to its end", err.Error())
		}
		return DecidedBody{1, s.router, relabelledOf(found)}, nil
	}
}

func decodeDecision(body []byte) (*claimOrReleaseBody, *problem) {
	invalid := func(format string, args ...any) (*claimOrReleaseBody, *problem) {
		return nil, unprocessable("invalid-decision", "The request is not valid", fmt.Sprintf(format, args...))
	}
	var requested claimOrReleaseBody
	if err := decodeStrictly(body, &requested); err != nil {
		return invalid("the body is not {vll, end, interface}: %v", err)
	}
	if _, ok := ownership.ParseTag(ownership.Tag{Key: requested.Key, Revision: 1}.String()); !ok {
		return invalid("vll is %q and end %q: these are an id in lower case with dashes, and a or z", requested.VLL, requested.End)
	}
	return &requested, nil
}

// RebuildBody is the response to a request for a rebuild.
type RebuildBody struct {
	Schema int    `json:"schema"`
	Router string `json:"router"`
	intent.Key
}

// rebuild requests that the sub-interface of an end is deleted and created again. The response confirms the
// request. An event in the reports to the portal shows when the rebuild is done.
func (s *Server) rebuild(_ *http.Request, requested *claimOrReleaseBody) (any, *problem) {
	end := requested.Key
	err := s.engine.RebuildVLAN(end)
	refusal := conflictOf(err,
		conflictIf(report.ErrNoSuchVLAN, "nothing-to-rebuild", "Nothing to rebuild"),
		conflictIf(converge.ErrNotRepaired, "frozen", "The router is frozen"))
	switch {
	case refusal != nil:
		return nil, refusal
	case err != nil:
		s.log.Error("not rebuilt", "end", end.String(), "error", err)
		return nil, internalError("not-done", "It was not done", err.Error())
	}
	return RebuildBody{1, s.router, end}, nil
}

// longestReason is the length of the longest reason for a freeze (bytes).
const longestReason = 200

type freezeRequest struct {
	Reason  string `json:"reason"`
	Seconds int64  `json:"seconds"`
}

func (s *Server) freeze(_ *http.Request, requested *freezeRequest) (any, *problem) {
	begun, err := s.engine.FreezeHere(requested.Reason, time.Now().Add(time.Duration(requested.Seconds)*time.Second))
	if err != nil {
		return nil, notFrozen(err)
	}
	return begun.Shown(time.Now()), nil
}

func decodeFreeze(body []byte) (*freezeRequest, *problem) {
	var requested freezeRequest
	longest := int64(freeze.Longest / time.Second)
	if err := decodeStrictly(body, &requested); err != nil || strings.TrimSpace(requested.Reason) == "" || len(requested.Reason) > longestReason ||
		requested.Seconds < 1 || requested.Seconds > longest {
		return nil, unprocessable("invalid-freeze", "The request is not valid",
			"the body is not {reason, seconds}: a reason of up to 200 bytes, and 1 second to 30 days")
	}
	return &requested, nil
}

func ignoreBody([]byte) (*struct{}, *problem) { return &struct{}{}, nil }

func (s *Server) unfreeze(*http.Request, *struct{}) (any, *problem) {
	if err := s.engine.Unfreeze(); err != nil {
		return nil, notFrozen(err)
	}
	return s.engine.Status().Freeze.Shown(time.Now()), nil
}

func notFrozen(err error) *problem {
	refusal := conflictOf(err,
		conflictBy[*converge.TestUnderWayError]("test-under-way", "A line is being tested"),
		conflictBy[*freeze.OtherError]("frozen", "This router is frozen already"),
		conflictIf(freeze.ErrNone, "not-frozen", "There is no freeze"))
	switch {
	case refusal != nil:
		return refusal
	case errors.Is(err, converge.ErrStopping):
		return unavailable(err)
	}
	return internalError("storage", "It could not be stored", "nothing was changed: "+err.Error())
}

type calibrationRequest struct {
	Schema    int  `json:"schema"`
	WithLines bool `json:"beside_lines"`
}

type missingBody struct {
	Transport string `json:"transport"`
	Message   string `json:"message"`
}

// CalibrationBody is the response to a calibration.
type CalibrationBody struct {
	Schema       int                  `json:"schema"`
	Router       string               `json:"router"`
	MeasuredMS   int64                `json:"measured_ms"`
	VPPVersion   string               `json:"vpp_version"`
	AgentVersion string               `json:"agent_version"`
	CPU          string               `json:"cpu"`
	ClockHz      float64              `json:"clock_hz"`
	Rounds       int                  `json:"rounds"`
	Frames       int                  `json:"frames"`
	Figures      []calibration.Figure `json:"figures"`
	Missing      []missingBody        `json:"missing"`
}

func (s *Server) calibrate(r *http.Request, requested *calibrationRequest) (any, *problem) {
	found, err := s.engine.Calibrate(r.Context(), requested.WithLines)
	if err != nil {
		s.log.Warn("not calibrated", "error", err)
		return nil, problemOf(err, frozen, vppRefused,
			conflictBy[*converge.InServiceError]("in-service", "The router is in service, and nothing was done"),
			conflictBy[*calibration.CannotError]("cannot-calibrate", "Nothing can be measured here"),
			conflictBy[*calibration.DisturbedError]("disturbed", "Other frames disturbed the measurement"))
	}
	return s.calibrationOf(found), nil
}

func decodeCalibration(body []byte) (*calibrationRequest, *problem) {
	var requested calibrationRequest
	if err := decodeStrictly(body, &requested); err != nil || requested.Schema != 1 {
		return nil, unprocessable("invalid-calibration", "The request is not valid", "the body is not {schema: 1, beside_lines}; nothing was done")
	}
	return &requested, nil
}

func (s *Server) calibrationOf(found *converge.Calibrated) CalibrationBody {
	body := CalibrationBody{
		Schema: 1, Router: s.router, MeasuredMS: found.AtMS, VPPVersion: found.VPP.Version, AgentVersion: s.version, CPU: found.CPU,
		ClockHz: math.Round(found.ClockRate), Rounds: found.Rounds, Frames: found.Frames, Figures: append([]calibration.Figure{}, found.Figures...), Missing: []missingBody{},
	}
	for _, transport := range calibration.Transports {
		if message, lacks := found.Missing[transport]; lacks {
			body.Missing = append(body.Missing, missingBody{string(transport), message})
		}
	}
	return body
}

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

// TraceBody is the response to a trace.
type TraceBody struct {
	Schema   int                  `json:"schema"`
	Router   string               `json:"router"`
	VLL      string               `json:"vll"`
	Examined int                  `json:"looked"` // number of packets that the tracer captured, of this line and of other lines
	Packets  []packettrace.Packet `json:"packets"`
}

func (s *Server) trace(r *http.Request, requested *traceRequest) (any, *problem) {
	named, unnamed := s.lineNamed(r.Context(), requested.Of)
	if unnamed != nil {
		return nil, unnamed
	}
	found, err := s.engine.Trace(r.Context(), named.vll, requested.Packets, time.Duration(requested.Seconds)*time.Second)
	if err != nil {
		s.log.Warn("no trace", "error", err)
		return nil, problemOf(err, // a refusal by VPP counts as unavailable here
			conflictIf(converge.ErrTracing, "tracer-in-use", "The tracer is in use"),
			conflictBy[*packettrace.InUseError]("tracer-in-use", "The tracer is in use"),
			conflictBy[*packettrace.CannotError]("cannot-trace", "Nothing can be traced here"),
			conflictBy[*packettrace.LeftError]("trace-left", "Something is left in VPP's tracer"),
			conflictBy[*converge.NotTestingError]("not-traced", "Nothing was traced"))
	}
	return TraceBody{1, s.router, named.vll, found.Examined, found.Packets}, nil
}

func decodeTrace(body []byte) (*traceRequest, *problem) {
	invalid := func(detail string) (*traceRequest, *problem) {
		return nil, unprocessable("invalid-trace", "The request is not valid", detail)
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

// testDecoder returns a decoder that turns the errors of decode into responses.
func testDecoder[T any](decode func([]byte) (*T, error)) func([]byte) (*T, *problem) {
	return func(body []byte) (*T, *problem) {
		requested, err := decode(body)
		if err != nil {
			return nil, invalidTest(err)
		}
		return requested, nil
	}
}

func invalidTest(err error) *problem {
	refusal := unprocessable("invalid-test", "The test is not valid", "nothing was sent")
	if malformed, is := errors.AsType[*intent.MalformedError](err); is {
		refusal.Errors = []intent.Error{{Code: "malformed_json", Detail: malformed.Detail}}
	} else if invalid, is := errors.AsType[*intent.InvalidError](err); is {
		refusal.Errors = invalid.Errors
	}
	return refusal
}

func (s *Server) sendTestFrames(r *http.Request, requested *intent.TestFrames) (any, *problem) {
	s.log.Info("test frames", "end", requested.Key.String(), "revision", requested.Revision, "frame", requested.Frame, "count", requested.Count,
		"request_ids", requestIDs(r.Header))
	result, err := s.engine.SendTestFrames(r.Context(), requested)
	if err != nil {
		return nil, failedTest(err)
	}
	c := result.Counters
	return testFramesBody{
		1, s.router, requested.Key, requested.Revision, result.Sent,
		testCountersBody{result.AtMS, c.Rx, c.Tx, c.Fragmented, c.Reassembled}, result.VPP.Version, s.version,
	}, nil
}

func failedTest(err error) *problem {
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

func (s *Server) measureRoundTrip(r *http.Request, requested *intent.RoundTrip) (any, *problem) {
	times, err := s.engine.MeasureRoundTrip(r.Context(), requested)
	if err != nil {
		return nil, failedTest(err)
	}
	return roundTripsBody{
		1, s.router, requested.Key, requested.Revision, times.Sent, times.Received,
		times.Min.Microseconds(), times.Avg.Microseconds(), times.Max.Microseconds(),
	}, nil
}

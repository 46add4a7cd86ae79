package server

import (
	"errors"
	"math"
	"net/http"

	"longline.dev/agent/internal/calibration"
	"longline.dev/agent/internal/converge"
	"longline.dev/agent/internal/vpp"
)

type calibrationRequest struct {
	Schema    int  `json:"schema"`
	WithLines bool `json:"beside_lines"`
}

type nodeBody struct {
	Node   string  `json:"node"`
	Clocks float64 `json:"clocks"`
}

type figureBody struct {
	Transport string     `json:"transport"`
	Clocks    float64    `json:"clocks"`
	Least     float64    `json:"least"`
	Most      float64    `json:"most"`
	Nodes     []nodeBody `json:"nodes"`
}

type missingBody struct {
	Transport string `json:"transport"`
	Message   string `json:"message"`
}

type calibrationBody struct {
	Schema       int           `json:"schema"`
	Router       string        `json:"router"`
	MeasuredMS   int64         `json:"measured_ms"`
	VPPVersion   string        `json:"vpp_version"`
	AgentVersion string        `json:"agent_version"`
	CPU          string        `json:"cpu"`
	ClockHz      float64       `json:"clock_hz"`
	Rounds       int           `json:"rounds"`
	Frames       int           `json:"frames"`
	Figures      []figureBody  `json:"figures"`
	Missing      []missingBody `json:"missing"`
}

func (s *Server) postCalibration(w http.ResponseWriter, r *http.Request) {
	takeRequest(s, w, r, decodeCalibration, func(requested *calibrationRequest) {
		found, err := s.engine.Calibrate(r.Context(), requested.WithLines)
		if err != nil {
			s.log.Warn("not calibrated", "error", err)
			failedCalibration(err).write(w)
			return
		}
		writeJSON(w, s.calibrationOf(found))
	})
}

func decodeCalibration(body []byte) (*calibrationRequest, *problem) {
	var requested calibrationRequest
	if err := decodeStrictly(body, &requested); err != nil || requested.Schema != 1 {
		return nil, &problem{Type: "invalid-calibration", Title: "The request is not valid", Status: http.StatusUnprocessableEntity,
			Detail: "the body is not {schema: 1, beside_lines}; nothing was done"}
	}
	return &requested, nil
}

func (s *Server) calibrationOf(found *converge.Calibrated) calibrationBody {
	body := calibrationBody{
		Schema: 1, Router: s.router, MeasuredMS: found.AtMS, VPPVersion: found.VPP.Version, AgentVersion: s.version, CPU: found.CPU,
		ClockHz: math.Round(found.ClockRate), Rounds: found.Rounds, Frames: found.Frames, Figures: []figureBody{}, Missing: []missingBody{},
	}
	for _, f := range found.Figures {
		figure := figureBody{Transport: string(f.Transport), Clocks: hundredths(f.Clocks), Least: hundredths(f.Least), Most: hundredths(f.Most), Nodes: []nodeBody{}}
		for _, n := range f.Nodes {
			figure.Nodes = append(figure.Nodes, nodeBody{n.Name, hundredths(n.Clocks)})
		}
		body.Figures = append(body.Figures, figure)
	}
	for _, transport := range calibration.Transports {
		if message, lacks := found.Missing[transport]; lacks {
			body.Missing = append(body.Missing, missingBody{string(transport), message})
		}
	}
	return body
}

// hundredths rounds to two decimals, because VPP prints at most three digits for each node.
func hundredths(clocks float64) float64 { return math.Round(clocks*100) / 100 }

// failedCalibration returns the response to a calibration that was not carried out.
func failedCalibration(err error) problem {
	var inService *converge.InServiceError
	var cannot *calibration.CannotError
	var refused *vpp.RefusedError
	var disturbed *calibration.DisturbedError
	var frozen *converge.FrozenError
	conflict := func(code, title string) problem { return conflictOf(err, code, title) }
	switch {
	case errors.As(err, &frozen):
		return frozenProblem(frozen)
	case errors.As(err, &inService):
		return conflict("in-service", "The router is in service, and nothing was done")
	case errors.As(err, &cannot):
		return conflict("cannot-calibrate", "Nothing can be measured here")
	case errors.As(err, &disturbed):
		return conflict("disturbed", "Other frames disturbed the measurement")
	case errors.As(err, &refused):
		return conflict("vpp-refused", "VPP did not do it")
	default:
		return unavailable(err)
	}
}

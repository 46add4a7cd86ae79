package server

import (
	"net/http"

	"longline.dev/agent/internal/intent"
)

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

package intent

// TestFrames is a request to send frames through the tunnel of an end that is being tested.
type TestFrames struct {
	Key
	Revision int32
	Frame    int // length of each frame (bytes), without FCS
	Count    int
	Rate     int // frames per second
}

const (
	minTestFrame = 64 // the minimum of Ethernet, with FCS
	maxTestFrame = 65535
	maxTestCount = 1000
	maxTestRate  = 1_000_000
)

// DecodeTestFrames decodes a request to send test frames. The error is a *MalformedError or an
// *InvalidError.
func DecodeTestFrames(data []byte) (*TestFrames, error) {
	return decodeRequest(data, func(f *fields, requested *TestFrames) {
		requested.Key, requested.Revision, _ = decodeKey(f)
		frame, _ := f.integer("frame", minTestFrame, maxTestFrame)
		count, counted := f.integer("count", 0, maxTestCount)
		rate, rated := f.integer("rate_pps", 1, maxTestRate)
		if counted && rated && count > rate {
			f.fail("rate_pps", "out_of_range", "%d frames at %d per second take more than a second", count, rate)
		}
		requested.Frame, requested.Count, requested.Rate = int(frame), int(count), int(rate)
	})
}

// RoundTrip is a request to measure the round-trip time between the two endpoints of an end's tunnel.
type RoundTrip struct {
	Key
	Revision int32
}

// DecodeRoundTrip decodes a request to measure round-trip times. The error is a *MalformedError or an
// *InvalidError.
func DecodeRoundTrip(data []byte) (*RoundTrip, error) {
	return decodeRequest(data, func(f *fields, requested *RoundTrip) { requested.Key, requested.Revision, _ = decodeKey(f) })
}

// decodeRequest decodes a small request about one end. The body must be an object with schema 1 and exactly
// the members that the function read uses.
func decodeRequest[T any](data []byte, read func(*fields, *T)) (*T, error) {
	tree, err := parse(data, nil)
	if err != nil {
		return nil, &MalformedError{Detail: err.Error()}
	}
	var errors []Error
	f := &fields{object: tree, errors: &errors}
	if schema, ok := f.integer("schema", -1<<31, 1<<31); ok && schema != 1 {
		f.fail("schema", "unknown_value", "this agent reads schema 1")
	}
	requested := new(T)
	read(f, requested)
	f.refuseUnknown()
	if len(errors) > 0 {
		return nil, &InvalidError{Errors: errors}
	}
	return requested, nil
}

package converge

import (
	"cmp"
	"context"
	"fmt"

	"longline.dev/agent/internal/calibration"
	"longline.dev/agent/internal/vpp"
)

// InServiceError says why this router must not be calibrated: it is in service, or it is not known to be
// under maintenance.
type InServiceError struct{ Why string }

func (e *InServiceError) Error() string { return e.Why }

// Calibrated is the result of a calibration.
type Calibrated struct {
	*calibration.Result
	AtMS int64
	VPP  vpp.Info
}

// Calibrator measures the cost of encapsulations in the engine's VPP.
type Calibrator struct {
	engine      *Engine
	maintenance func() (on, known bool)
}

// NewCalibrator returns a calibrator. maintenance reports whether this router is under maintenance in the portal.
// known is false if the portal has not reported this recently.
func NewCalibrator(engine *Engine, maintenance func() (on, known bool)) *Calibrator {
	return &Calibrator{engine, maintenance}
}

// Calibrate measures the cost of encapsulations on this router. The router must be under maintenance in the
// portal. Lines that carry frames on this router influence the figures, because they share VPP's
// graph and threads with the measurement. If there are such lines, Calibrate measures only if
// withLines is true. No converge runs during the measurement.
//
// It returns *InServiceError, *calibration.CannotError, *vpp.RefusedError, *calibration.DisturbedError,
// *FrozenError, ErrNoVPP, ErrStopping or an error of the connection.
func (c *Calibrator) Calibrate(ctx context.Context, withLines bool) (*Calibrated, error) {
	e := c.engine
	ctx, release := e.untilStopped(ctx)
	defer release()
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.busy.Unlock()
	if err := cmp.Or(e.frozen(), c.allowed(withLines)); err != nil {
		return nil, err
	}
	session, err := e.Session()
	if err != nil {
		return nil, err
	}
	found := &Calibrated{VPP: session.Info()}
	if found.VPP.Simulated() {
		return nil, &calibration.CannotError{Why: "this is a stand-in for VPP: it forwards no frames, and they cost it nothing"}
	}
	if e.options.FreeInterfaces != nil { // VPP aborts if it has too many interfaces
		snapshot, err := e.quickObservation(ctx, session, e.storedOrEmpty())
		if err != nil {
			return nil, err
		}
		if free, err := e.options.FreeInterfaces(snapshot.Boot.MS, len(snapshot.Interfaces)); err == nil && free < calibration.Interfaces {
			return nil, &calibration.CannotError{Why: fmt.Sprintf("VPP's stats segment has no room for %d more interfaces", calibration.Interfaces)}
		}
	}
	if found.Result, err = calibration.Measure(ctx, session, calibration.Usual); err != nil {
		return nil, e.orStopped(err)
	}
	found.AtMS = e.now().UnixMilli()
	e.log.Info("calibrated", "rounds", found.Rounds, "frames", found.Frames, "figures", len(found.Figures))
	return found, nil
}

func (c *Calibrator) allowed(withLines bool) error {
	on, known := c.maintenance()
	carrying := 0
	for _, end := range c.engine.storedOrEmpty().Present {
		if end.AdminUp && !end.Testing {
			carrying++
		}
	}
	switch {
	case !known:
		return &InServiceError{"whether this router is under maintenance is not known: the portal has not reported it recently"}
	case !on:
		return &InServiceError{"the portal does not have this router under maintenance: begin it there first"}
	case carrying > 0 && !withLines:
		return &InServiceError{fmt.Sprintf("lines carry frames here, at %d of their ends, and would share VPP with the calibration: their frames would come later, "+
			"by up to a millisecond, and some may be lost; drain the router first, or calibrate with -with-lines", carrying)}
	}
	return nil
}

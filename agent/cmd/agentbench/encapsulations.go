package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"longline.dev/agent/internal/calibration"
	"longline.dev/agent/internal/realvpp"
	"longline.dev/agent/internal/statseg"
	"longline.dev/agent/internal/vpp"
)

// measureEncapsulations prints the cost of each transport. It starts a private VPP. This must be a
// real VPP, because the stand-in does not forward frames as VPP does.
func measureEncapsulations(ctx context.Context, stdout io.Writer) error {
	install, err := realvpp.Find()
	if err != nil {
		return err
	}
	v, err := realvpp.Start(ctx, install, realvpp.Options{Plugins: []string{"vxlan", "geneve", "gre"}})
	if err != nil {
		return err
	}
	defer v.Stop()
	session, err := vpp.Dialer{Socket: v.APISocket(), Timeout: 10 * time.Second, BootMS: func(ctx context.Context) (int64, error) {
		return statseg.BootTime(ctx, v.StatsSocket())
	}}.Dial(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	result, err := calibration.Measure(ctx, session, calibration.Usual)
	if err != nil {
		return err
	}
	for _, f := range result.Figures {
		fmt.Fprintf(stdout, "bench encap_cycles_%s %.1f clocks %.1f to %.1f in %d rounds of %d frames, %s\n",
			f.Transport, f.Clocks, f.Least, f.Most, result.Rounds, result.Frames, session.Info().Version)
	}
	return nil
}

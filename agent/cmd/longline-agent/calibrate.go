package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// runCalibrate lets the agent measure how much CPU each encapsulation needs on this router.
func runCalibrate(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newCommand()
	withLines := flags.Bool("with-lines", false, "")
	// Scripts of release 0.1.0 use the earlier name.
	flags.BoolVar(withLines, "beside-lines", false, "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	return call(ctx, flags, "/v1/calibration", map[string]any{"schema": 1, "beside_lines": *withLines}, stdout, printCalibration)
}

type calibrationAnswer struct {
	Router     string
	MeasuredMS int64  `json:"measured_ms"`
	VPPVersion string `json:"vpp_version"`
	CPU        string
	ClockHz    float64 `json:"clock_hz"`
	Rounds     int
	Frames     int
	Figures    []struct {
		Transport           string
		Clocks, Least, Most float64
		Nodes               []struct {
			Node   string
			Clocks float64
		}
	}
	Missing []struct{ Transport, Message string }
}

func printCalibration(w io.Writer, c *calibrationAnswer) {
	fmt.Fprintf(w, "%s, VPP %s, measured %s\n", c.Router, c.VPPVersion, time.UnixMilli(c.MeasuredMS).UTC().Format(time.RFC3339))
	fmt.Fprintf(w, "%s, %.0f million clocks in a second; %d rounds of %d frames of 64 bytes\n", c.CPU, c.ClockHz/1e6, c.Rounds, c.Frames)
	base := 0.0
	if len(c.Figures) > 0 && c.Figures[0].Transport == "l2xc" {
		base = c.Figures[0].Clocks
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "transport\tclocks per frame\tleast\tmost\tto l2xc\tns more than l2xc\t\n")
	for _, f := range c.Figures {
		ratio, more := "-", "-"
		if base > 0 {
			ratio = fmt.Sprintf("%.2f", f.Clocks/base)
		}
		if base > 0 && c.ClockHz > 0 {
			more = fmt.Sprintf("%.1f", (f.Clocks-base)/c.ClockHz*1e9)
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%s\t%s\t\n", f.Transport, f.Clocks, f.Least, f.Most, ratio, more)
	}
	_ = t.Flush() // cannot fail, because t writes to a buffer
	for _, m := range c.Missing {
		fmt.Fprintf(w, "%s is not measured: this VPP has no message %s\n", m.Transport, m.Message)
	}
}

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"longline.dev/agent/internal/freeze"
)

// runFreeze requests the agent not to change VPP for a given time.
func runFreeze(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newCommand()
	reason := flags.String("reason", "", "")
	lasting := flags.Duration("for", 0, "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	if strings.TrimSpace(*reason) == "" || *lasting < time.Second {
		return &usageError{"freeze needs -reason TEXT and -for DURATION, such as 2h30m"}
	}
	body := map[string]any{"reason": *reason, "seconds": int64(*lasting / time.Second)}
	return call(ctx, flags, "/v1/freeze", body, stdout, printFreeze)
}

// runUnfreeze ends a freeze early.
func runUnfreeze(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newCommand()
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	return call(ctx, flags, "/v1/unfreeze", struct{}{}, stdout, printFreeze)
}

func printFreeze(w io.Writer, f *freeze.Shown) {
	if f.Over {
		fmt.Fprintf(w, "the freeze by the %s (%s) is over; differences are not repaired until an operator acknowledges them in the portal\n", f.By, f.Reason)
		return
	}
	fmt.Fprintf(w, "frozen by the %s until %s: %s\n", f.By, time.UnixMilli(f.UntilMS).UTC().Format(time.RFC3339), f.Reason)
}

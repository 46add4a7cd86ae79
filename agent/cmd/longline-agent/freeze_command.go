package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"longline.dev/agent/internal/freeze"
)

// runFreeze asks the agent not to change VPP for a given time.
func runFreeze(ctx context.Context, args []string, stdout io.Writer) error {
	flags := quietFlags()
	configPath := flags.String("config", defaultConfig, "")
	reason := flags.String("reason", "", "")
	lasting := flags.Duration("for", 0, "")
	asJSON := flags.Bool("json", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if strings.TrimSpace(*reason) == "" || *lasting < time.Second {
		return &usageError{"freeze needs -reason TEXT and -for DURATION, such as 2h30m"}
	}
	body, err := json.Marshal(map[string]any{"reason": *reason, "seconds": int64(*lasting / time.Second)})
	if err != nil {
		return err
	}
	answer, err := request(ctx, *configPath, http.MethodPost, "/v1/freeze", body)
	if err != nil {
		return err
	}
	return show(stdout, answer, *asJSON, printFreeze)
}

// runUnfreeze ends a freeze early.
func runUnfreeze(ctx context.Context, args []string, stdout io.Writer) error {
	flags := quietFlags()
	configPath := flags.String("config", defaultConfig, "")
	asJSON := flags.Bool("json", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	answer, err := request(ctx, *configPath, http.MethodPost, "/v1/unfreeze", []byte("{}"))
	if err != nil {
		return err
	}
	return show(stdout, answer, *asJSON, printFreeze)
}

func printFreeze(w io.Writer, f *freeze.Shown) {
	if f.Over {
		fmt.Fprintf(w, "the freeze by the %s (%s) is over; differences are not repaired until an operator acknowledges them in the portal\n", f.By, f.Reason)
		return
	}
	fmt.Fprintf(w, "frozen by the %s until %s: %s\n", f.By, time.UnixMilli(f.UntilMS).UTC().Format(time.RFC3339), f.Reason)
}

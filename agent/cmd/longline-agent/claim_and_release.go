package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// runClaimOrRelease sends an operator's decision to the agent. The decision (claim or release) is about
// interfaces whose tags another user has changed.
func runClaimOrRelease(ctx context.Context, decision string, args []string, stdout io.Writer) error {
	flags := quietFlags()
	configPath := flags.String("config", defaultConfig, "")
	vll := flags.String("vll", "", "")
	end := flags.String("end", "", "")
	name := flags.String("interface", "", "")
	asJSON := flags.Bool("json", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if *vll == "" || *end != "a" && *end != "z" {
		return &usageError{decision + " needs -vll UUID and -end a or z"}
	}
	body, err := json.Marshal(map[string]string{"vll": *vll, "end": *end, "interface": *name})
	if err != nil {
		return err
	}
	answer, err := request(ctx, *configPath, http.MethodPost, "/v1/"+decision, body)
	if err != nil {
		return err
	}
	return show(stdout, answer, *asJSON, map[string]func(io.Writer, *relabelledAnswer){"claim": printClaimed, "release": printReleased}[decision])
}

type relabelledAnswer struct{ Relabelled []relabelled }

func printClaimed(w io.Writer, d *relabelledAnswer) {
	for _, r := range d.Relabelled {
		fmt.Fprintf(w, "%s (sw_if_index %d) has the tag of %s:%s again; it had %s\n", r.Interface, r.SwIfIndex, r.VLL, r.End, r.tag())
	}
}

func printReleased(w io.Writer, d *relabelledAnswer) {
	for _, r := range d.Relabelled {
		fmt.Fprintf(w, "%s (sw_if_index %d) is yours and stays unchanged; it belonged to %s:%s and has %s\n", r.Interface, r.SwIfIndex, r.VLL, r.End, r.tag())
	}
}

package main

import (
	"context"
	"fmt"
	"io"
)

// runClaimOrRelease sends an operator's decision to the agent. The decision (claim or release) is about
// interfaces whose tags another user has changed.
func runClaimOrRelease(ctx context.Context, decision string, args []string, stdout io.Writer) error {
	flags := newCommand()
	vll := flags.String("vll", "", "")
	end := flags.String("end", "", "")
	name := flags.String("interface", "", "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	if *vll == "" || *end != "a" && *end != "z" {
		return &usageError{decision + " needs -vll UUID and -end a or z"}
	}
	body := map[string]string{"vll": *vll, "end": *end, "interface": *name}
	print := map[string]func(io.Writer, *relabelledAnswer){"claim": printClaimed, "release": printReleased}[decision]
	return call(ctx, flags, "/v1/"+decision, body, stdout, print)
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

type rebuildAnswer struct{ VLL, End string }

// runRebuild requests a rebuild: the agent deletes the sub-interface of an end and creates it again.
func runRebuild(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newCommand()
	vll := flags.String("vll", "", "")
	end := flags.String("end", "", "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	if *vll == "" || *end != "a" && *end != "z" {
		return &usageError{"rebuild needs -vll UUID and -end a or z"}
	}
	return call(ctx, flags, "/v1/rebuild", map[string]string{"vll": *vll, "end": *end}, stdout, func(w io.Writer, a *rebuildAnswer) {
		fmt.Fprintf(w, "the sub-interface of %s:%s will be deleted and created again as soon as the agent has no other work; an event in the portal confirms it\n", a.VLL, a.End)
	})
}

package main

import (
	"context"
	"fmt"
	"io"
)

type traceAnswer struct {
	VLL     string
	Looked  int
	Packets []struct {
		At, From string
		Nodes    []struct {
			Node string
			Says []string
		}
	}
}

// runTrace shows packets of a line, as VPP's packet tracer recorded them.
func runTrace(ctx context.Context, args []string, stdout io.Writer) error {
	of, args := lineName(args)
	flags := newCommand()
	packets := flags.Int("packets", 10, "")
	seconds := flags.Int("seconds", 5, "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	switch {
	case of == "":
		return &usageError{"trace needs the line's id, the beginning of it, or its name"}
	case *packets < 1 || *packets > 50:
		return &usageError{"-packets must be 1 to 50"}
	case *seconds < 1 || *seconds > 30:
		return &usageError{"-seconds must be 1 to 30"}
	}
	body := map[string]any{"schema": 1, "of": of, "packets": *packets, "seconds": *seconds}
	return call(ctx, flags, "/v1/trace", body, stdout, printTrace)
}

func printTrace(w io.Writer, t *traceAnswer) {
	fmt.Fprintf(w, "line     %s\n", t.VLL)
	fmt.Fprintf(w, "         %d packets of this line, among the first %d that the tracer captured\n", len(t.Packets), t.Looked)
	for _, p := range t.Packets {
		fmt.Fprintf(w, "\n%s by %s\n", p.At, p.From)
		for _, n := range p.Nodes {
			fmt.Fprintf(w, "  %s\n", n.Node)
			for _, line := range n.Says {
				fmt.Fprintf(w, "    %s\n", line)
			}
		}
	}
}

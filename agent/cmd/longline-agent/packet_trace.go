package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
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
	var of []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") { // a name may consist of several words, even without quotes
		of, args = append(of, args[0]), args[1:]
	}
	flags := quietFlags()
	configPath := flags.String("config", defaultConfig, "")
	packets := flags.Int("packets", 10, "")
	seconds := flags.Int("seconds", 5, "")
	asJSON := flags.Bool("json", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	switch {
	case len(of) == 0:
		return &usageError{"trace needs the line's id, the beginning of it, or its name"}
	case *packets < 1 || *packets > 50:
		return &usageError{"-packets must be 1 to 50"}
	case *seconds < 1 || *seconds > 30:
		return &usageError{"-seconds must be 1 to 30"}
	}
	body, err := json.Marshal(map[string]any{"schema": 1, "of": strings.Join(of, " "), "packets": *packets, "seconds": *seconds})
	if err != nil {
		return err
	}
	answer, err := request(ctx, *configPath, http.MethodPost, "/v1/trace", body)
	if err != nil {
		return err
	}
	return show(stdout, answer, *asJSON, printTrace)
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

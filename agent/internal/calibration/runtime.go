package calibration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// node is what VPP's runtime counters say of a node of its graph, over all threads.
type node struct {
	vectors int     // frames that it was handed
	clocks  float64 // in all
}

// The fields of a line of show runtime (vlib/node_cli.c, format_vlib_node_stats), from its end: a state may be two words.
const (
	vectorsField = 4
	clocksField  = 2
	figures      = 5
)

// clocksNames is what the clocks are called before 26.02, and from then on.
var clocksNames = []string{"Clocks", "Packet-Clocks"}

// readRuntime reads show runtime: for each thread a table of nodes, with the clocks that a frame took, to three digits.
func readRuntime(text string) (map[string]node, error) {
	nodes := make(map[string]node)
	headed := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) > 0 && fields[0] == "Name" {
			if last := len(fields); last < figures || fields[last-vectorsField] != "Vectors" || !slices.Contains(clocksNames, fields[last-clocksField]) {
				return nil, &CannotError{fmt.Sprintf("this VPP's show runtime has other columns: %q", strings.TrimSpace(line))}
			}
			headed = true
			continue
		}
		last := len(fields)
		if !headed || last < figures+2 {
			continue
		}
		vectors, vectorsErr := strconv.Atoi(fields[last-vectorsField])
		clocks, clocksErr := strconv.ParseFloat(fields[last-clocksField], 64)
		if vectorsErr != nil || clocksErr != nil || vectors <= 0 {
			continue // a heading of a thread, or a process, whose clocks are per call
		}
		seen := nodes[fields[0]]
		nodes[fields[0]] = node{seen.vectors + vectors, seen.clocks + clocks*float64(vectors)}
	}
	if !headed {
		return nil, &CannotError{"this VPP's show runtime says nothing of nodes"}
	}
	return nodes, nil
}

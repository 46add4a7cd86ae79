package calibration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// node contains VPP's runtime counters of a graph node, summed over all threads.
type node struct {
	vectors int     // frames that the node received
	clocks  float64 // sum over all frames
}

// Fields of a row of show runtime (vlib/node_cli.c, format_vlib_node_stats). The fields are counted
// from the end of the row, because a state may have two words.
const (
	vectorsField = 4
	clocksField  = 2
	figures      = 5
)

// clocksNames are the names of the column with the clocks: the name before VPP 26.02, and the name
// since then.
var clocksNames = []string{"Clocks", "Packet-Clocks"}

// readRuntime parses the output of show runtime. For each thread, the output has a table of nodes
// with the clocks per frame, rounded to three digits.
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
			continue // a heading of a thread, or a process with clocks per call
		}
		sum := nodes[fields[0]]
		nodes[fields[0]] = node{sum.vectors + vectors, sum.clocks + clocks*float64(vectors)}
	}
	if !headed {
		return nil, &CannotError{"this VPP's show runtime lists no nodes"}
	}
	return nodes, nil
}

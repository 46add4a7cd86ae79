package calibration

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
)

// shown is the output of VPP 25.10 with two threads.
const shown = `Time .4, 1 sec internal node vector rate 256.00 loops/sec 1618.75
  vector rates in 2.6331e5, out 2.6331e5, drop 0.0000e0, punt 0.0000e0
             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call  
ethernet-input                   active                  1               1               0          4.00e2            1.00
ip4-full-reassembly-expire-wal "any wait"                0               0               8          1.09e4            0.00
unix-cli-process-0              "running"                2               0               4          3.50e5            0.00
---------------
Thread 1 vpp_wk_0 (lcore 1)
Time .4, 1 sec internal node vector rate 256.00 loops/sec 1618.75
  vector rates in 2.6331e5, out 2.6331e5, drop 0.0000e0, punt 0.0000e0
             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call  
ethernet-input                   active                  4            1000               0          2.00e1          250.00
l2-input                         active                  4            1000               0          1.26e1          250.00
l2-output                        active                  4            1000               0          8.94e0          250.00
pg-input                         polling                 4            1000               0          9.54e3          250.00
pg1280049154-output              active                  4            1000               0          9.23e0          250.00
pg1280049154-tx                  active                  4            1000               0          1.13e1          250.00
`

func TestReadRuntimeSumsAllThreads(t *testing.T) {
	since2602, err := readRuntime(strings.ReplaceAll(shown, "         Clocks", "  Packet-Clocks"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := readRuntime(shown)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(nodes, since2602) {
		t.Errorf("from 26.02 on it reads %v, before %v", since2602, nodes)
	}
	if got := nodes["ethernet-input"]; got.vectors != 1001 || math.Abs(got.clocks-20_400) > 1e-6 {
		t.Errorf("ethernet-input: %+v", got)
	}
	if _, exists := nodes["unix-cli-process-0"]; exists {
		t.Error("a process counts")
	}
	taken, err := sampleOf(nodes, L2XC, 1000)
	if err != nil {
		t.Fatal(err)
	}
	want := sample{"ethernet-input": 20_400. / 1001, "l2-input": 12.6, "l2-output": 8.94, "pg1280049154-output": 9.23}
	if !maps.EqualFunc(taken, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
		t.Errorf("got %v, want %v", taken, want)
	}
}

func TestSampleFailsWithOtherOrLostFrames(t *testing.T) {
	nodes, err := readRuntime(shown)
	if err != nil {
		t.Fatal(err)
	}
	var disturbed *DisturbedError
	if _, err := sampleOf(nodes, L2XC, 980); !errors.As(err, &disturbed) || disturbed.Other < 20 {
		t.Errorf("with 20 frames of others: %v", err)
	}
	var cannot *CannotError
	if _, err := sampleOf(nodes, L2XC, 1001); !errors.As(err, &cannot) {
		t.Errorf("with a frame that did not come through: %v", err)
	}
	if _, err := sampleOf(nodes, "vxlan4", 1000); !errors.As(err, &cannot) {
		t.Errorf("with none in the underlay: %v", err)
	}
}

func TestReadRuntimeRefusesAnotherFormat(t *testing.T) {
	for name, text := range map[string]string{
		"none":          "",
		"other columns": strings.ReplaceAll(shown, "Clocks", "Cycles"),
		"a refusal":     "show: unknown input `runtime'\n",
	} {
		t.Run(name, func(t *testing.T) {
			var cannot *CannotError
			if nodes, err := readRuntime(text); !errors.As(err, &cannot) {
				t.Errorf("read %v, %v", nodes, err)
			}
		})
	}
}

func TestFiguresHaveTwoDecimals(t *testing.T) {
	f := figure(L2XC, []sample{{"l2-input": 12.3456, "l2-output": 7}})
	if want := (Figure{L2XC, 19.35, 19.35, 19.35, []Node{{"l2-input", 12.35}, {"l2-output", 7}}}); !reflect.DeepEqual(f, want) {
		t.Errorf("got %+v, want %+v", f, want)
	}
}

func TestMedianIsTheMiddleValue(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1}, 1}, {[]float64{5, 1000, 4}, 5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("of %v it is %g", c.values, got)
		}
	}
}

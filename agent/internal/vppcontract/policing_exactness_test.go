package vppcontract

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/binapi/classify"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/policer"
	"go.fd.io/govpp/binapi/policer_types"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/realvpp"
)

// secondsEach is the environment variable that turns TestHowExactlyFramesArePoliced into a measurement: the
// seconds for which each rate is sent.
//
//	LONGLINE_POLICING_SECONDS=2 go test -v -run TestHowExactly ./internal/vppcontract/
const secondsEach = "LONGLINE_POLICING_SECONDS"

// TestHowExactlyFramesArePoliced sends four times a policer's rate, divided among the workers, into a VLAN
// that the classifier polices and into a port that is policed as a whole. It prints how much the passed
// traffic differs from the bucket plus the rate over the elapsed time. It also prints the CPU use of the
// policing node (cycles per frame, by "show runtime"). The bounds are loose: a busy machine sends in
// bursts, and two workers that share a bucket without a lock overdraw it.
func TestHowExactlyFramesArePoliced(t *testing.T) {
	workers, rates, lasting := []int{1}, []uint32{10_000}, 300*time.Millisecond
	if seconds, err := strconv.ParseFloat(os.Getenv(secondsEach), 64); err == nil {
		workers, rates = []int{0, 1, 2}, []uint32{1_000, 10_000, 100_000, 1_000_000}
		lasting = time.Duration(seconds * float64(time.Second))
	}
	for _, n := range workers {
		t.Run(fmt.Sprint(n, " workers"), func(t *testing.T) {
			if runtime.NumCPU() <= n {
				t.Skipf("SKIPPED, NOT MEASURED: VPP gives each of %d workers and the main thread a core of its own", n)
			}
			vpp := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"policer"}, Workers: n})
			d := &device{T: t, socket: vpp.APISocket(), stats: vpp.StatsSocket(),
				restart: func() error { return vpp.Restart(context.Background()) }}
			d.connect()
			if d.policesSubInterfaces() {
				t.Skip("this release needs no classifier")
			}
			in, out := d.generated()
			sub := d.subif(in, 100)
			d.setFlags(sub, up)
			client := d.connectStats()
			for _, kbps := range rates {
				for _, deep := range []time.Duration{250 * time.Millisecond, 10 * time.Millisecond} {
					d.xconnect(sub, out)
					d.xconnect(out, sub)
					d.measure(client, "VLAN", sub, out, kbps, bucket(kbps, deep), n, lasting)
					do(d, xconnect(sub, out, false), &l2.SwInterfaceSetL2XconnectReply{})
					d.xconnect(in, out)
					d.xconnect(out, in)
					d.measure(client, "port", in, out, kbps, bucket(kbps, deep), n, lasting)
					do(d, xconnect(in, out, false), &l2.SwInterfaceSetL2XconnectReply{})
				}
			}
		})
	}
}

// bucket returns the bytes that the rate gives in that time, and at least ten frames. With a quarter of a
// second, traffic that a busy machine delays still passes later. With 10 ms, which the portal chooses,
// longer delays reduce the rate.
func bucket(kbps uint32, deep time.Duration) uint64 {
	return max(uint64(float64(kbps)*1000/8*deep.Seconds()), 10*frameSize)
}

// measure polices the frames received on an interface to a rate, and prints how exact that was.
func (d *device) measure(
	client *statsclient.StatsClient, target string, from, out index, kbps uint32, burst uint64, workers int, lasting time.Duration,
) {
	d.Helper()
	config := policer_types.PolicerConfig{
		Cir: kbps, Cb: burst, RoundType: policer_types.SSE2_QOS_ROUND_API_TO_CLOSEST, Type: policer_types.SSE2_QOS_POLICER_TYPE_API_1R2C,
		ConformAction: policer_types.Sse2QosAction{Type: policer_types.SSE2_QOS_ACTION_API_TRANSMIT},
		ExceedAction:  policer_types.Sse2QosAction{Type: policer_types.SSE2_QOS_ACTION_API_TRANSMIT},
	}
	made := do(d, &policer.PolicerAdd{Name: policerName, Infos: config}, &policer.PolicerAddReply{}).PolicerIndex
	vlan, node := "vlan 100", "l2-policer-classify"
	if target == "VLAN" {
		table := d.classified(made)
		d.classify(from, table, true)
		defer func() {
			d.classify(from, table, false)
			do(d, deleteTable(table), &classify.ClassifyAddDelTableReply{})
			do(d, &policer.PolicerDel{PolicerIndex: made}, &policer.PolicerDelReply{})
		}()
	} else {
		vlan, node = "", "policer-input"
		do(d, &policer.PolicerInput{Name: policerName, SwIfIndex: from, Apply: true}, &policer.PolicerInputReply{})
		defer func() {
			do(d, &policer.PolicerInput{Name: policerName, SwIfIndex: from}, &policer.PolicerInputReply{})
			do(d, &policer.PolicerDel{PolicerIndex: made}, &policer.PolicerDelReply{})
		}()
	}
	passedBefore := d.combined(client, "/if/tx", uint32(out)).Packets()
	d.cli("clear runtime")
	rate := 4 * float64(kbps) * 1000 / 8 / frameSize // frames per second
	sent, took := d.flood(client, made, vlan, rate, uint64(rate*lasting.Seconds()), workers)
	conform, _, violate := d.colours(client, made)
	passed := d.combined(client, "/if/tx", uint32(out)).Packets() - passedBefore
	want := float64(burst) + float64(kbps)*1000/8*took.Seconds()
	off := 100 * (float64(conform.Bytes()) - want) / want
	few := d.cycles(node)
	d.cli("clear runtime")
	d.flood(client, made, vlan, 0, 20_000, workers)
	fmt.Printf("policing %s, %d workers, %d kbit/s, %d bytes of burst: %d frames in %.2f s, %d passed, %+.2f %%; cycles a frame: %s, all at once %s\n",
		target, workers, kbps, burst, sent, took.Seconds(), passed, off, few, d.cycles(node))
	if all := conform.Packets() + violate.Packets(); all > sent || workers < 2 && all != sent {
		d.Errorf("%s: %d frames were counted of %d", target, all, sent)
	}
	if passed == 0 || passed == sent || passed != conform.Packets() {
		d.Errorf("%s: %d of %d frames passed, and %d by the counters", target, passed, sent, conform.Packets())
	}
}

// flood sends frames from pg0, divided among the workers, at the given rate per second or, for 0, as fast
// as possible. It returns the number of frames, and the time until the policer had counted them or its
// counters stopped: handing frames from one worker to another may lose some.
func (d *device) flood(
	client *statsclient.StatsClient, made uint32, vlan string, rate float64, count uint64, workers int,
) (sent uint64, took time.Duration) {
	d.Helper()
	payload := frameSize - 14 - 20 - 8
	if vlan != "" {
		payload -= 4
	}
	streams, pace := max(workers, 1), ""
	each := count / uint64(streams)
	if rate > 0 {
		pace = fmt.Sprintf("rate %.0f", rate/float64(streams))
	}
	counted := func() uint64 {
		conform, _, violate := d.colours(client, made)
		return conform.Packets() + violate.Packets()
	}
	before := counted()
	for n := range streams {
		d.cli(fmt.Sprintf("packet-generator new { name flood%d limit %d %s size %d-%d worker %d interface pg0 node ethernet-input "+
			"data { IP4: 00:00:00:00:00:01 -> 00:00:00:00:00:02 %s UDP: 192.0.2.1 -> 192.0.2.2 UDP: 1 -> 2 incrementing %d } }",
			n, each, pace, frameSize, frameSize, n, vlan, payload))
	}
	started := time.Now()
	d.cli("packet-generator enable-stream")
	sent = uint64(streams) * each
	for last, since := before, started; last-before < sent && time.Since(since) < time.Second; time.Sleep(time.Millisecond) {
		if now := counted(); now != last {
			last, since = now, time.Now()
			took = since.Sub(started)
		}
	}
	time.Sleep(50 * time.Millisecond) // the last ones may be in transit
	for n := range streams {
		d.cli(fmt.Sprintf("packet-generator delete flood%d", n))
	}
	return sent, took
}

// cycles returns the cycles that a node took for each frame, by thread (the column Clocks of "show
// runtime").
func (d *device) cycles(node string) string {
	d.Helper()
	shown := do(d, &vlib.CliInband{Cmd: "show runtime"}, &vlib.CliInbandReply{}).Reply
	line := regexp.MustCompile(`(?m)^` + node + ` +\S+ +\d+ +(\d+) +\d+ +(\S+) +(\S+)`)
	var found []string
	for _, m := range line.FindAllStringSubmatch(shown, -1) {
		clocks, _ := strconv.ParseFloat(m[2], 64)
		found = append(found, fmt.Sprintf("%.0f (%s a call)", clocks, m[3]))
	}
	return strings.Join(found, " and ")
}

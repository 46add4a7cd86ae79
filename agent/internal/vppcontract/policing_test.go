package vppcontract

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/binapi/policer"
	"go.fd.io/govpp/binapi/policer_types"
	"go.fd.io/govpp/binapi/vlib"

	"longline.dev/agent/internal/realvpp"
)

// onReal runs a case that needs frames, which the stand-in does not forward.
func onReal(t *testing.T, run func(d *device)) {
	t.Helper()
	vpp := realvpp.StartOrSkip(t, realvpp.Options{Plugins: []string{"vxlan", "geneve", "gre", "policer"}})
	d := &device{T: t, socket: vpp.APISocket(), stats: vpp.StatsSocket(),
		restart: func() error { return vpp.Restart(context.Background()) }}
	d.connect()
	run(d)
}

func (d *device) cli(command string) {
	d.Helper()
	if reply := do(d, &vlib.CliInband{Cmd: command}, &vlib.CliInbandReply{}); reply.Reply != "" {
		d.Log(command, "->", reply.Reply)
	}
}

// policesSubInterfaces returns true from 26.06 on.
func (d *device) policesSubInterfaces() bool {
	d.Helper()
	return d.isFrom(26, 6)
}

const (
	frames    = 1000
	frameSize = 1000 // bytes, with a VLAN tag if there is one
)

// generated creates two ports of VPP's packet generator and sets them up.
func (d *device) generated() (in, out index) {
	d.Helper()
	d.cli("create packet-generator interface pg0")
	d.cli("create packet-generator interface pg1")
	in, out = d.interfaces()["pg0"].SwIfIndex, d.interfaces()["pg1"].SwIfIndex
	d.setFlags(in, up)
	d.setFlags(out, up)
	return in, out
}

func (d *device) send(client *statsclient.StatsClient, in index, vlan string) {
	d.Helper()
	d.sendTo(client, in, vlan, "00:00:00:00:00:02")
}

// sendTo sends a thousand frames into pg0 at once, and waits until all are received.
func (d *device) sendTo(client *statsclient.StatsClient, in index, vlan, mac string) {
	d.Helper()
	payload := frameSize - 14 - 20 - 8
	if vlan != "" {
		payload -= 4
	}
	before := d.combined(client, "/if/rx", uint32(in))
	d.cli(fmt.Sprintf("packet-generator new { name burst limit %d size %d-%d interface pg0 node ethernet-input "+
		"data { IP4: 00:00:00:00:00:01 -> %s %s UDP: 192.0.2.1 -> 192.0.2.2 UDP: 1 -> 2 incrementing %d } }",
		frames, frameSize, frameSize, mac, vlan, payload))
	d.cli("packet-generator enable-stream burst")
	for deadline := time.Now().Add(answerIn); d.combined(client, "/if/rx", uint32(in)).Packets()-before.Packets() < frames; {
		if time.Now().After(deadline) {
			d.Fatalf("received %v", d.combined(client, "/if/rx", uint32(in)))
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // received frames are forwarded in the same iteration; the last ones may be in transit
	d.cli("packet-generator delete burst")
}

// combined returns the sum of a counter over the threads.
func (d *device) combined(client *statsclient.StatsClient, name string, index uint32) adapter.CombinedCounter {
	d.Helper()
	var sum adapter.CombinedCounter
	for _, thread := range d.stat(client, name).(adapter.CombinedCounterStat) {
		if int(index) < len(thread) {
			sum[0] += thread[index][0]
			sum[1] += thread[index][1]
		}
	}
	return sum
}

func (d *device) colours(client *statsclient.StatsClient, index uint32) (conform, exceed, violate adapter.CombinedCounter) {
	d.Helper()
	return d.combined(client, "/net/policer/conform", index), d.combined(client, "/net/policer/exceed", index),
		d.combined(client, "/net/policer/violate", index)
}

// fillTime is how long slow and slowWithExcess take to fill an empty bucket.
const fillTime = 10 * time.Second

// slow returns 8 kbit/s, which is one frame per second, with a bucket for ten frames.
func slow() policer_types.PolicerConfig {
	config := committed()
	config.Cir, config.Cb = 8, 10*frameSize
	return config
}

// slowWithExcess returns 16 kbit/s and twenty frames, half of it as excess.
func slowWithExcess() policer_types.PolicerConfig {
	config := slow()
	config.Type, config.Eir, config.Eb = policer_types.SSE2_QOS_POLICER_TYPE_API_2R3C_RFC_2698, 2*config.Cir, 2*config.Cb
	return config
}

func (d *device) police(in index, config policer_types.PolicerConfig) uint32 {
	d.Helper()
	made := do(d, &policer.PolicerAdd{Name: policerName, Infos: config}, &policer.PolicerAddReply{}).PolicerIndex
	do(d, &policer.PolicerInput{Name: policerName, SwIfIndex: in, Apply: true}, &policer.PolicerInputReply{})
	return made
}

func TestFramesBeyondTheRateOfAWholePortAreDroppedAndCounted(t *testing.T) {
	for name, c := range map[string]struct {
		config  policer_types.PolicerConfig
		passing uint64 // frames of the burst
		exceed  uint64
	}{
		"one rate":  {slow(), 10, 0},
		"two rates": {slowWithExcess(), 20, 10},
	} {
		t.Run(name, func(t *testing.T) {
			onReal(t, func(d *device) {
				in, out := d.generated()
				client := d.connectStats()
				d.xconnect(in, out)
				d.xconnect(out, in)
				d.mustPolice(client, in, in, out, "", c.config, c.passing, c.exceed)
			})
		})
	}
}

func TestFramesBeyondTheRateOfASubInterfaceAreDroppedAndCountedFrom2606(t *testing.T) {
	onReal(t, func(d *device) {
		in, out := d.generated()
		client := d.connectStats()
		sub := d.subif(in, 100)
		d.setFlags(sub, up)
		d.xconnect(sub, out)
		d.xconnect(out, sub)
		d.rewrite(sub, pop1)
		if d.policesSubInterfaces() {
			d.mustPolice(client, in, sub, out, "vlan 100", slow(), 10, 0)
			return
		}
		made := d.police(sub, slow())
		d.send(client, in, "vlan 100")
		if _, _, violate := d.colours(client, made); violate.Packets() != 0 {
			d.Errorf("this release polices sub-interfaces: %v", violate)
		}
		if sent := d.combined(client, "/if/tx", uint32(out)); sent.Packets() != frames {
			d.Errorf("%d of %d frames came out", sent.Packets(), frames)
		}
	})
}

// mustPolice sends a burst and checks that exactly the content of the buckets passes, plus what is added to
// them meanwhile.
func (d *device) mustPolice(
	client *statsclient.StatsClient, port, in, out index, vlan string, config policer_types.PolicerConfig, passing, exceeding uint64,
) {
	d.Helper()
	begun := time.Now()
	made := d.police(in, config)
	d.send(client, port, vlan)
	sent := d.mustHaveDropped(client, made, out, passing, exceeding, begun)
	faster := committed()
	do(d, &policer.PolicerUpdate{PolicerIndex: made, Infos: faster}, &policer.PolicerUpdateReply{})
	conform, exceed, violate := d.colours(client, made)
	if conform != exceed || exceed != violate || violate.Packets() != 0 {
		d.Errorf("after an update the counters are %v, %v, %v", conform, exceed, violate)
	}
	d.send(client, port, vlan)
	conform, _, _ = d.colours(client, made)
	if passed := d.combined(client, "/if/tx", uint32(out)).Packets() - sent; passed < 64 || passed != conform.Packets() {
		d.Errorf("after an update in place %d frames passed, and %d by its counters; want the 64 of its bucket", passed, conform.Packets())
	}
}

// mustHaveDropped checks the result of a burst, and returns the number of forwarded frames. The buckets were
// full at the time begun or later.
func (d *device) mustHaveDropped(
	client *statsclient.StatsClient, made uint32, out index, passing, exceeding uint64, begun time.Time,
) uint64 {
	d.Helper()
	conform, exceed, violate := d.colours(client, made)
	sent := d.combined(client, "/if/tx", uint32(out))
	more := 1 + uint64(float64(passing)*float64(time.Since(begun))/float64(fillTime))
	d.Logf("conform %v exceed %v violate %v, sent %v", conform, exceed, violate, sent)
	if all := conform.Packets() + exceed.Packets() + violate.Packets(); all != frames {
		d.Errorf("counted %d of %d frames", all, frames)
	}
	if passed := conform.Packets() + exceed.Packets(); passed != sent.Packets() || passed < passing || passed > passing+more {
		d.Errorf("%d frames passed by its counters, and %d came out; want %d to %d", passed, sent.Packets(), passing, passing+more)
	}
	if exceed.Packets() < exceeding || (exceeding == 0) != (exceed.Packets() == 0) {
		d.Errorf("%d frames exceeded, want %d", exceed.Packets(), exceeding)
	}
	if violate.Bytes() != violate.Packets()*frameSize {
		d.Errorf("%d frames of %d bytes violated, and %d bytes", violate.Packets(), frameSize, violate.Bytes())
	}
	return sent.Packets()
}

func TestAPolicerHasItsCountersAtItsIndexFromZero(t *testing.T) {
	both(t, func(d *device) {
		client := d.connectStats()
		d.policer("other")
		index := d.policer(policerName)
		for _, colour := range []string{"conform", "exceed", "violate"} {
			threads := d.stat(client, "/net/policer/"+colour).(adapter.CombinedCounterStat)
			if len(threads) == 0 || len(threads[0]) <= int(index) || threads[0][index].Packets() != 0 {
				d.Errorf("%s: %v", colour, threads)
			}
		}
	})
}

func TestAPeakBelowTheCommittedRateIsRefused(t *testing.T) {
	both(t, func(d *device) {
		for _, kind := range []policer_types.Sse2QosPolicerType{
			policer_types.SSE2_QOS_POLICER_TYPE_API_2R3C_RFC_2698, policer_types.SSE2_QOS_POLICER_TYPE_API_2R3C_RFC_4115,
		} {
			config := slowWithExcess()
			config.Type, config.Eir = kind, config.Cir-1
			refused(d, &policer.PolicerAdd{Name: policerName, Infos: config}, &policer.PolicerAddReply{}, -7)
			config.Eir = config.Cir
			made := do(d, &policer.PolicerAdd{Name: policerName, Infos: config}, &policer.PolicerAddReply{}).PolicerIndex
			do(d, &policer.PolicerDel{PolicerIndex: made}, &policer.PolicerDelReply{})
		}
	})
}

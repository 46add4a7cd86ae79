package vppcontract

import (
	"strings"
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/policer"
	"go.fd.io/govpp/binapi/policer_types"
	"go.fd.io/govpp/binapi/vlib"
)

// committed returns 50 Mbit/s with a bucket of 64,000 bytes; everything above is dropped.
func committed() policer_types.PolicerConfig {
	return policer_types.PolicerConfig{
		Cir: 50_000, Cb: 64_000, RoundType: policer_types.SSE2_QOS_ROUND_API_TO_CLOSEST, Type: policer_types.SSE2_QOS_POLICER_TYPE_API_1R2C,
		ConformAction: policer_types.Sse2QosAction{Type: policer_types.SSE2_QOS_ACTION_API_TRANSMIT},
		ExceedAction:  policer_types.Sse2QosAction{Type: policer_types.SSE2_QOS_ACTION_API_TRANSMIT},
	}
}

const policerName = "longline:6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01:a"

func (d *device) policer(name string) uint32 {
	d.Helper()
	return do(d, &policer.PolicerAdd{Name: name, Infos: committed()}, &policer.PolicerAddReply{}).PolicerIndex
}

func (d *device) policers(index uint32) []*policer.PolicerDetails {
	d.Helper()
	return dump[*policer.PolicerDetails](d, &policer.PolicerDumpV2{PolicerIndex: index})
}

func TestAPolicerIsReadBackAsItWasMadeAndFoundByItsIndex(t *testing.T) {
	both(t, func(d *device) {
		other, index := d.policer("other"), d.policer(policerName)
		if all := d.policers(none); len(all) != 2 {
			d.Fatalf("%d policers", len(all))
		}
		found := d.policers(index)
		if len(found) != 1 || found[0].Name != policerName || found[0].Cir != 50_000 || found[0].Cb != 64_000 ||
			found[0].ViolateAction.Type != policer_types.SSE2_QOS_ACTION_API_DROP {
			d.Errorf("%+v", found)
		}
		do(d, &policer.PolicerDel{PolicerIndex: other}, &policer.PolicerDelReply{})
		if left := d.policers(other); len(left) != 0 {
			d.Errorf("at the freed index: %+v", left)
		}
	})
}

func TestTheNameOfAPolicerIsItsKey(t *testing.T) {
	both(t, func(d *device) {
		index := d.policer(policerName)
		refused(d, &policer.PolicerAdd{Name: policerName, Infos: committed()}, &policer.PolicerAddReply{}, -81)
		do(d, &policer.PolicerDel{PolicerIndex: index}, &policer.PolicerDelReply{})
		refused(d, &policer.PolicerDel{PolicerIndex: index}, &policer.PolicerDelReply{}, -6)
		d.policer(policerName)
	})
}

func TestAPolicerChangesInPlace(t *testing.T) {
	both(t, func(d *device) {
		index := d.policer(policerName)
		faster := committed()
		faster.Cir *= 2
		do(d, &policer.PolicerUpdate{PolicerIndex: index, Infos: faster}, &policer.PolicerUpdateReply{})
		if now := d.policers(index); len(now) != 1 || now[0].Cir != faster.Cir || now[0].Name != policerName {
			d.Errorf("%+v", now)
		}
	})
}

func TestAPolicerThatDoesNotExistCannotBeApplied(t *testing.T) {
	both(t, func(d *device) {
		port := do(d, &interfaces.CreateLoopbackInstance{}, &interfaces.CreateLoopbackInstanceReply{}).SwIfIndex
		refused(d, &policer.PolicerInput{Name: policerName, SwIfIndex: port, Apply: true}, &policer.PolicerInputReply{}, -6)
		index := d.policer(policerName)
		do(d, &policer.PolicerInput{Name: policerName, SwIfIndex: port, Apply: true}, &policer.PolicerInputReply{})
		do(d, &policer.PolicerInput{Name: policerName, SwIfIndex: port, Apply: false}, &policer.PolicerInputReply{})
		do(d, &policer.PolicerDel{PolicerIndex: index}, &policer.PolicerDelReply{})
	})
}

// Before 25.06 no message reports where a policer works.
func TestTheCLIShowsWhereAPolicerIsAppliedAndHowOften(t *testing.T) {
	both(t, func(d *device) {
		if d.policesSubInterfaces() {
			d.Skip("this release supports only feature_is_enabled")
		}
		port := d.portUp()
		name := d.at(port).InterfaceName
		d.policer(policerName)
		for _, times := range []int{0, 1, 2, 1, 0} {
			if before := strings.Count(d.deviceInput(name), "  policer-input\n"); before != times {
				do(d, &policer.PolicerInput{Name: policerName, SwIfIndex: port, Apply: before < times}, &policer.PolicerInputReply{})
			}
			if shown := d.deviceInput(name); strings.Count(shown, "  policer-input\n") != times {
				d.Errorf("applied %d times: %q", times, shown)
			}
		}
		reply := send(d, &vlib.CliInband{Cmd: "show interface features nosuch"}, &vlib.CliInbandReply{})
		if reply.Retval == 0 {
			d.Errorf("an interface that is not there: %q", reply.Reply)
		}
	})
}

// deviceInput returns the CLI's output about the features of a port's device-input arc.
func (d *device) deviceInput(port string) string {
	d.Helper()
	shown := do(d, &vlib.CliInband{Cmd: "show interface features " + port}, &vlib.CliInbandReply{}).Reply
	_, after, found := strings.Cut(shown, "\ndevice-input:\n")
	if !found {
		d.Fatalf("no arc device-input: %q", shown)
	}
	features, _, _ := strings.Cut(after, "\n\n")
	return features + "\n"
}

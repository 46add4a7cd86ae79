package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"longline.dev/agent/internal/report"
)

// known emits a counter if VPP has it.
func (e emitter) known(d *prometheus.Desc, count *uint64, labels ...string) {
	if count != nil {
		e.count(d, float64(*count), labels...)
	}
}

func (e emitter) losses(ports []report.PortCount, router *report.RouterCount) {
	for _, port := range ports {
		e.count(portFrames, float64(port.Rx), port.Name, "rx")
		e.count(portFrames, float64(port.Tx), port.Name, "tx")
		e.count(portDropped, float64(port.Drops), port.Name)
		for reason, frames := range map[string]uint64{
			"rx_miss": port.RxMiss, "rx_error": port.RxErrors, "rx_no_buffer": port.RxNoBuffer, "tx_error": port.TxErrors,
		} {
			e.count(portLost, float64(frames), port.Name, reason)
		}
	}
	if router == nil {
		return
	}
	e.known(noTunnel, router.NoSuchTunnel)
	e.known(fragments, router.FragmentsSent)
	e.known(reassembled, router.Reassembled, "ok")
	e.known(reassembled, router.ReassemblyFailed, "failed")
	if router.Total != 0 {
		e.gauge(buffers, float64(router.Total))
		e.gauge(buffersFree, float64(router.Free))
	}
}

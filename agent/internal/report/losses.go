package report

import "longline.dev/agent/internal/statseg"

// Port is an interface that the agent did not create, towards the backbone or a customer: a port, or a
// sub-interface with addresses.
type Port struct {
	Index uint32
	Name  string
}

// PortCount has the numbers of frames that a port transferred and lost.
type PortCount struct {
	Name                                          string
	Rx, Tx                                        uint64
	Drops, RxMiss, RxErrors, RxNoBuffer, TxErrors uint64
}

// Lost returns the number of frames that never reached VPP, or could not leave VPP because the link was down.
// It does not include drops, because VPP also drops frames on purpose, for example frames that a policer
// refuses or that no tunnel matches.
func (c PortCount) Lost() uint64 { return c.RxMiss + c.RxErrors + c.RxNoBuffer + c.TxErrors }

// RouterCount has the counters of the whole router. A counter is nil if this VPP does not have it.
type RouterCount struct {
	statseg.RouterErrors
	statseg.Buffers // at the end of the interval
}

// portCounts returns the differences between the last two readings, if both are from the VPP that started at
// bootMS. It omits a port if the name at its index has changed, or if one of its counters has decreased.
func (l Loads) portCounts(bootMS int64, ports []Port) (counts []PortCount) {
	for _, port := range ports {
		before, beforeOK := l.before.portCount(bootMS, port)
		now, nowOK := l.last.portCount(bootMS, port)
		if !beforeOK || !nowOK {
			continue
		}
		count := PortCount{Name: port.Name}
		grew := true
		for _, field := range []struct {
			to          *uint64
			before, now uint64
		}{
			{&count.Rx, before.Rx, now.Rx},
			{&count.Tx, before.Tx, now.Tx},
			{&count.Drops, before.Drops, now.Drops},
			{&count.RxMiss, before.RxMiss, now.RxMiss},
			{&count.RxErrors, before.RxErrors, now.RxErrors},
			{&count.RxNoBuffer, before.RxNoBuffer, now.RxNoBuffer},
			{&count.TxErrors, before.TxErrors, now.TxErrors},
		} {
			grew = grew && field.now >= field.before
			*field.to = field.now - field.before
		}
		if grew {
			counts = append(counts, count)
		}
	}
	return counts
}

// portCount returns the counters of a port since VPP started. It returns false unless all counters of
// losses are known.
func (m *moment) portCount(bootMS int64, port Port) (PortCount, bool) {
	carried, known := m.counts(bootMS, port.Index, port.Name)
	l, i := m.reading.Losses, int(port.Index)
	if !known || i >= min(len(l.Drops), len(l.RxMiss), len(l.RxErrors), len(l.RxNoBuffer), len(l.TxErrors)) {
		return PortCount{}, false
	}
	return PortCount{
		port.Name, carried.rx.Packets, carried.tx.Packets,
		l.Drops[i], l.RxMiss[i], l.RxErrors[i], l.RxNoBuffer[i], l.TxErrors[i],
	}, true
}

// routerCount returns the differences between the last two readings. It returns nil unless both readings are
// from the VPP that started at bootMS.
func (l Loads) routerCount(bootMS int64) *RouterCount {
	before, now := l.before.reading, l.last.reading
	if before.BootMS != bootMS || now.BootMS != bootMS {
		return nil
	}
	return &RouterCount{
		statseg.RouterErrors{
			NoSuchTunnel:     grown(before.Errors.NoSuchTunnel, now.Errors.NoSuchTunnel),
			UnknownVLAN:      grown(before.Errors.UnknownVLAN, now.Errors.UnknownVLAN),
			FragmentsSent:    grown(before.Errors.FragmentsSent, now.Errors.FragmentsSent),
			Reassembled:      grown(before.Errors.Reassembled, now.Errors.Reassembled),
			ReassemblyFailed: grown(before.Errors.ReassemblyFailed, now.Errors.ReassemblyFailed),
		},
		now.Buffers,
	}
}

// grown returns the increase of a counter. It returns nil if before or now is unknown, or if the counter has
// decreased.
func grown(before, now *uint64) *uint64 {
	if before == nil || now == nil || *now < *before {
		return nil
	}
	difference := *now - *before
	return &difference
}

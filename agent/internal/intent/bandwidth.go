package intent

const (
	leastRate  = 1000               // bit/s: VPP's policers count in kbit/s
	mostRate   = (1<<32 - 1) * 1000 // bit/s: VPP's policers store the rate in 32 bits
	mostBurst  = 1<<31 - 1          // bytes
	leastBurst = minFrame           // bytes; no frame would pass a bucket that is smaller than the frame
)

// decodeBandwidth reads the bandwidth profile of an end. frame is the length of the end's longest frame
// (bytes), or 0 if unknown. The profile may be null or absent. In this case VPP polices nothing.
func decodeBandwidth(end *fields, frame int64) Bandwidth {
	if value, _ := end.optional("bandwidth"); value == nil {
		return Bandwidth{}
	}
	f, ok := end.child("bandwidth")
	if !ok {
		return Bandwidth{}
	}
	defer f.refuseUnknown()
	var b Bandwidth
	b.CIR, _ = f.integer("cir_bps", leastRate, mostRate)
	b.CBS = decodeBurst(f, "cbs_bytes", true, frame)
	eir, known := f.integer("eir_bps", 0, mostRate-b.CIR) // the peak rate of VPP's policer is CIR + EIR
	if b.EIR = eir; known {
		b.EBS = decodeBurst(f, "ebs_bytes", eir > 0, frame)
	} else {
		f.get("ebs_bytes")
	}
	return b
}

// decodeBurst reads the size of a bucket (bytes). If filled is false, no rate fills the bucket, and its size
// must be 0. Otherwise the bucket must have room for at least one frame.
func decodeBurst(f *fields, name string, filled bool, frame int64) int64 {
	if !filled {
		f.integer(name, 0, 0)
		return 0
	}
	burst, ok := f.integer(name, leastBurst, mostBurst)
	if ok && burst < frame {
		f.fail(name, "burst_too_small", "%d bytes are less than a frame of %d", burst, frame)
	}
	return burst
}

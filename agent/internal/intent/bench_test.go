package intent

import (
	"fmt"
	"testing"
)

// BenchmarkDecodeOfAThousandEnds measures the decoding for each change of one VLL.
func BenchmarkDecodeOfAThousandEnds(b *testing.B) {
	one := decodedIn(b, "vxlan4-dot1q.json").Present[0]
	in := &Intent{Router: "rhino", Generation: 1}
	for n := range 1000 {
		e := one
		e.VLL = fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		e.Access.Outer, e.Tunnel.VNI = uint16(1+n), uint32(1+n)
		in.Present = append(in.Present, e)
	}
	document := in.Document()
	b.Run("all new", func(b *testing.B) {
		for b.Loop() {
			if _, err := Decode(document, "rhino"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("all known", func(b *testing.B) {
		decoder := NewDecoder("rhino")
		for b.Loop() {
			if _, err := decoder.Decode(document); err != nil {
				b.Fatal(err)
			}
		}
	})
}

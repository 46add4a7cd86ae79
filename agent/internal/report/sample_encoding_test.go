package report

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"

	"longline.dev/agent/internal/statseg"
)

func TestAStoredSampleSurvivesARoundTrip(t *testing.T) {
	want := &storedSample{BootID: bootID, KernelBoot: uuid.New(), Simulated: true, Sample: sampleNo(7)}
	want.FromUptimeMS, want.ToUptimeMS = 86_400_000, 86_410_000
	want.Ends[0].Key.End = "z"
	want.Ends = append(want.Ends, policedCount(7, 8, 9))
	want.Ends[0].Dropped = Dropped{In: known(3)}
	want.Ends[1].Dropped = Dropped{Out: known(1 << 40)}
	want.Ports = []PortCount{{Name: "bb0", Rx: 1, Tx: 2, Drops: 3, RxMiss: 4, RxErrors: 5, RxNoBuffer: 6, TxErrors: 7}, {Name: "cust0"}}
	want.Router = &RouterCount{statseg.RouterErrors{NoSuchTunnel: known(0), ReassemblyFailed: known(9)}, statseg.Buffers{Total: 16384, Free: 5}}
	data, err := want.marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := unmarshal(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func policedCount(conform, exceed, violate uint64) EndCount {
	count := func(n uint64) statseg.Count { return statseg.Count{Bytes: n * 100, Packets: n} }
	return EndCount{Key: alice.Key, Policed: &Colours{count(conform), count(exceed), count(violate)}}
}

func TestSamplesOfEarlierVersionsAreRead(t *testing.T) {
	want := &storedSample{BootID: bootID, Sample: sampleNo(3)}
	data, err := want.marshal()
	if err != nil {
		t.Fatal(err)
	}
	latest := slices.Clone(data)
	// Earlier versions lack the ID of the kernel's run after the first 18 bytes, and the two uptimes after the
	// sample's number (1 byte) and times (3 bytes each).
	data = slices.Delete(data, 18, 34)
	data = slices.Delete(data, 25, 27)
	// After the counters of the one end: flags of a policer and of its drops, no ports, no router.
	for version, without := range map[byte]int{1: 5, 2: 4, 3: 0} {
		data[0] = version
		if got, err := unmarshal(data[:len(data)-without]); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("version %d: got %+v, %v\nwant %+v", version, got, err, want)
		}
	}
	latest[0] = recordVersion + 1
	if _, err := unmarshal(latest); err == nil {
		t.Error("read a layout of the future")
	}
}

func FuzzAnInvalidStoredSampleIsAnError(f *testing.F) {
	data, err := (&storedSample{BootID: bootID, Sample: sampleNo(7)}).marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Add(append(data, 0))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := unmarshal(data)
		if err != nil {
			return
		}
		again, err := s.marshal()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := unmarshal(again); err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%+v became %+v, %v", s, back, err)
		}
	})
}

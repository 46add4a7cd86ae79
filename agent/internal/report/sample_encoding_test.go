package report

import (
	"reflect"
	"testing"

	"longline.dev/agent/internal/statseg"
)

func TestAStoredSampleIsReadAsItWasWritten(t *testing.T) {
	want := &storedSample{BootID: bootID, Simulated: true, Sample: sampleNo(7)}
	want.Ends[0].Key.End = "z"
	want.Ends = append(want.Ends, policedCount(7, 8, 9))
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

func TestWhatAnAgentWithoutPolicerCountersStoredIsRead(t *testing.T) {
	want := &storedSample{BootID: bootID, Sample: sampleNo(3)}
	data, err := want.marshal()
	if err != nil {
		t.Fatal(err)
	}
	data[0] = 1
	old := data[:len(data)-1] // its one end, without the flag of a policer
	if got, err := unmarshal(old); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	data[0] = recordVersion + 1
	if _, err := unmarshal(data); err == nil {
		t.Error("read a layout of the future")
	}
}

func FuzzWhatIsNoStoredSampleIsAnError(f *testing.F) {
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

package report

import (
	"reflect"
	"testing"
)

func TestAStoredSampleIsReadAsItWasWritten(t *testing.T) {
	want := &stored{BootID: bootID, Simulated: true, Sample: sampleNo(7)}
	want.Ends[0].Key.End = "z"
	data, err := want.marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := unmarshal(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func FuzzWhatIsNoStoredSampleIsAnError(f *testing.F) {
	data, err := (&stored{BootID: bootID, Sample: sampleNo(7)}).marshal()
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

package report

import (
	"testing"

	"longline.dev/agent/internal/statseg"
)

func TestALoadIsTheDifferenceDividedByTheTime(t *testing.T) {
	var m Sampler
	m.Take(after(0), reading(1, 5_000, 1_000), View{})
	if _, known := loadOf(&m); known {
		t.Error("one reading gave a load")
	}
	m.Take(after(10), reading(2, 17_500, 1_010), View{})
	if load, known := loadOf(&m); !known || load != (Load{RxBPS: 10_000, TxBPS: 8}) {
		t.Errorf("%+v, %v", load, known)
	}
	m.Take(after(15), reading(3, 17_500, 1_010), View{})
	if load, known := loadOf(&m); !known || load != (Load{}) {
		t.Errorf("without traffic: %+v, %v", load, known)
	}
}

func TestThereIsNoLoadWithoutComparableReadings(t *testing.T) {
	for why, second := range map[string]statseg.Reading{
		"VPP restarted":         with(reading(2, 9000, 9000), func(r *statseg.Reading) { r.BootMS = 2000 }),
		"another one's index":   with(reading(2, 9000, 9000), func(r *statseg.Reading) { r.Names = []string{"local0", "other"} }),
		"received went back":    reading(2, 4999, 9000),
		"sent went back":        reading(2, 9000, 999),
		"no interface any more": with(reading(2, 9000, 9000), func(r *statseg.Reading) { r.Names = r.Names[:1] }),
		"no counters any more":  with(reading(2, 9000, 9000), func(r *statseg.Reading) { r.Rx = r.Rx[:1] }),
	} {
		t.Run(why, func(t *testing.T) {
			var m Sampler
			m.Take(after(0), reading(1, 5_000, 1_000), View{})
			m.Take(after(10), second, View{})
			if load, known := loadOf(&m); known {
				t.Errorf("%+v", load)
			}
		})
	}
}

func TestForgetClearsTheLoads(t *testing.T) {
	var m Sampler
	m.Take(after(0), reading(1, 5_000, 1_000), View{})
	m.Take(after(10), reading(2, 9_000, 9_000), View{})
	m.Forget()
	m.Take(after(20), reading(3, 9_900, 9_900), View{})
	if load, known := loadOf(&m); known {
		t.Errorf("%+v", load)
	}
}

func loadOf(m *Sampler) (Load, bool) {
	loads := m.Loads()
	return loads.Of(alice.BootMS, alice.Index, alice.Name)
}

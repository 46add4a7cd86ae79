package report

import "testing"

func sequence(samples []Sample) []int64 {
	var seq []int64
	for _, s := range samples {
		seq = append(seq, s.Seq)
	}
	return seq
}

func TestAFullQueueDropsTheOldestAndCountsIt(t *testing.T) {
	q := NewQueue(2)
	for seq := range int64(5) {
		q.Add(Sample{Seq: seq + 1})
	}
	if got := sequence(q.Oldest(10)); len(got) != 2 || got[0] != 4 || got[1] != 5 {
		t.Errorf("holds %v", got)
	}
	if q.Dropped() != 3 {
		t.Errorf("dropped %d", q.Dropped())
	}
}

func TestWhatThePortalTookIsGoneAndWhatCameMeanwhileStays(t *testing.T) {
	q := NewQueue(2)
	q.Add(Sample{Seq: 1})
	q.Add(Sample{Seq: 2})
	sent := q.Oldest(10)
	q.Add(Sample{Seq: 3}) // pushes 1 out while it is being sent
	q.Done(sent[len(sent)-1].Seq, false)
	if got := sequence(q.Oldest(10)); len(got) != 1 || got[0] != 3 {
		t.Errorf("holds %v", got)
	}
}

func TestWhatThePortalRefusesForGoodCountsAsDropped(t *testing.T) {
	q := NewQueue(10)
	q.Add(Sample{Seq: 1})
	q.Add(Sample{Seq: 2})
	q.Done(1, true)
	if q.Dropped() != 1 || len(q.Oldest(10)) != 1 {
		t.Errorf("dropped %d, holds %v", q.Dropped(), sequence(q.Oldest(10)))
	}
}

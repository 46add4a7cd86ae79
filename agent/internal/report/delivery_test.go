package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"longline.dev/agent/internal/intent"
	"longline.dev/agent/internal/spool"
	"longline.dev/agent/internal/statseg"
)

var (
	bootID = uuid.MustParse("d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10")
	quiet  = slog.New(slog.NewTextHandler(io.Discard, nil))
)

// stubPortal accepts counters, or returns the result of answer.
type stubPortal struct {
	mu       sync.Mutex
	answer   func() error
	reports  []countersBody
	requests []time.Time
}

func (p *stubPortal) Post(_ context.Context, _ string, report, _ any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, time.Now())
	if p.answer != nil {
		if err := p.answer(); err != nil {
			return err
		}
	}
	p.reports = append(p.reports, report.(countersBody))
	return nil
}

// comeBack makes the portal accept all reports from now on.
func (p *stubPortal) comeBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = nil
}

// taken returns the accepted reports.
func (p *stubPortal) taken() []countersBody {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.reports)
}

// requestTimes returns the times of all requests.
func (p *stubPortal) requestTimes() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// got returns the sequence numbers accepted from one run of the agent, in order of arrival.
func (p *stubPortal) got(boot uuid.UUID) []int64 {
	var seq []int64
	for _, report := range p.taken() {
		if report.BootID == boot.String() {
			for _, s := range report.Samples {
				seq = append(seq, s.Seq)
			}
		}
	}
	return seq
}

func upTo(n int64) []int64 {
	var seq []int64
	for i := range n {
		seq = append(seq, i+1)
	}
	return seq
}

func sampleNo(seq int64) Sample {
	return Sample{Seq: seq, FromMS: seq * 10_000, ToMS: (seq + 1) * 10_000, Ends: []EndCount{{
		Key: alice.Key, In: statseg.Count{Bytes: uint64(seq), Packets: 1}, Out: statseg.Count{Bytes: 1 << 50, Packets: 1 << 40},
	}}}
}

func keep(t *testing.T, s *spool.Spool, boot uuid.UUID, simulated bool, seq ...int64) {
	t.Helper()
	for _, n := range seq {
		data, err := (&storedSample{BootID: boot, Simulated: simulated, Sample: sampleNo(n)}).marshal()
		if err == nil {
			err = s.Append(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func openSpool(t *testing.T, folder string, limit int64) *spool.Spool {
	t.Helper()
	s := spool.Open(folder, limit)
	t.Cleanup(func() { s.Close() })
	return s
}

func forwarding(s *spool.Spool, to Poster) *deliverer {
	return &deliverer{kind: "counters", spool: s, to: to, log: quiet, now: time.Now, compose: composeCounters(time.Now, s.Dropped)}
}

func TestADayWithoutPortalIsDeliveredCompletelyAndInOrder(t *testing.T) {
	const day = 24 * 360 // samples at 10 s
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("no route to host")
		portal := &stubPortal{answer: func() error { return away }}
		s := openSpool(t, folder, 64<<20)
		ctx, cancel := context.WithCancel(t.Context())
		f := forwarding(s, portal)
		done := make(chan struct{})
		go func() { f.run(ctx); close(done) }()
		for seq := range int64(day) {
			keep(t, s, bootID, false, seq+1)
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		if s.Waiting() != day || len(portal.taken()) != 0 {
			t.Errorf("%d wait and %d reports were taken", s.Waiting(), len(portal.taken()))
		}
		if n := len(portal.requestTimes()); n < 24*60 || n > 3*24*60 {
			t.Errorf("the portal received %d requests in a day", n)
		}
		portal.comeBack()
		time.Sleep(2 * longestPause)
		synctest.Wait()
		if got := portal.got(bootID); !slices.Equal(got, upTo(day)) {
			t.Errorf("%d samples came, want %d in order", len(got), day)
		}
		if s.Waiting() != 0 || portal.taken()[0].Dropped != 0 {
			t.Errorf("%d wait, %d dropped", s.Waiting(), portal.taken()[0].Dropped)
		}
		cancel()
		<-done
	})
}

func TestADayOfAThousandEndsFitsTheDefaultLimit(t *testing.T) {
	s := storedSample{BootID: bootID, Sample: Sample{Seq: 8640, FromMS: start.UnixMilli(), ToMS: start.UnixMilli() + 10_000}}
	for range 1000 {
		line := statseg.Count{Bytes: 12_500_000_000, Packets: 8_333_333} // 10 Gbit/s over 10 s
		s.Ends = append(s.Ends, EndCount{Key: intent.Key{VLL: uuid.NewString(), End: "z"}, In: line, Out: line})
	}
	data, err := s.marshal()
	if err != nil {
		t.Fatal(err)
	}
	const standardLimit, segments, framing = 512 << 20, 16, 8
	if day := 8640 * (len(data) + framing); day > standardLimit*(segments-1)/segments {
		t.Errorf("a day is %d MiB", day>>20)
	}
}

func TestAnAgentKilledBeforeRecordingADeliverySendsAgainAndLosesNothing(t *testing.T) {
	folder := t.TempDir()
	portal := &stubPortal{}
	s := openSpool(t, folder, 1<<20)
	keep(t, s, bootID, false, upTo(25)...)
	for run := range 4 { // each run is killed after the portal accepted its second batch, before that is recorded
		f := forwarding(openSpool(t, folder, 1<<20), portal)
		if _, err := f.deliverOne(t.Context()); err != nil {
			t.Fatal(err)
		}
		records, err := f.spool.Oldest(batch)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) == 0 {
			break
		}
		report, _, err := f.compose(records)
		if err != nil {
			t.Fatal(err)
		}
		if err := portal.Post(t.Context(), "counters", report, nil); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
	}
	got := portal.got(bootID)
	if len(got) <= 25 {
		t.Fatalf("nothing was sent twice: %v", got)
	}
	slices.Sort(got)
	if unique := slices.Compact(got); !slices.Equal(unique, upTo(25)) {
		t.Errorf("got %v", unique)
	}
}

func TestSamplesOfEarlierRunsKeepTheirBootIDAndComeFirst(t *testing.T) {
	folder := t.TempDir()
	later := uuid.New()
	keep(t, openSpool(t, folder, 1<<20), bootID, false, 1, 2, 3)
	s := openSpool(t, folder, 1<<20)
	keep(t, s, later, false, 1, 2)
	keep(t, s, later, true, 3)
	portal := &stubPortal{}
	f := forwarding(s, portal)
	for sent := true; sent; {
		var err error
		if sent, err = f.deliverOne(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(portal.reports) != 3 || !slices.Equal(portal.got(bootID), upTo(3)) || !slices.Equal(portal.got(later), upTo(3)) {
		t.Fatalf("got %+v", portal.reports)
	}
	if portal.reports[0].BootID != bootID.String() || portal.reports[1].Simulated || !portal.reports[2].Simulated {
		t.Errorf("got %+v", portal.reports)
	}
}

func TestAReportHasAnUptimeOnlyIfTheRouterWasNotRestartedSinceItsSamples(t *testing.T) {
	if kernelBoot() == uuid.Nil {
		t.Fatal("this kernel has no boot ID")
	}
	s := openSpool(t, t.TempDir(), 1<<20)
	portal := &stubPortal{}
	before := uptimeAt(time.Now())
	for seq, boot := range []uuid.UUID{uuid.Nil, uuid.New(), kernelBoot()} {
		sample := storedSample{BootID: uuid.New(), KernelBoot: boot, Sample: sampleNo(int64(seq))}
		sample.FromUptimeMS, sample.ToUptimeMS = 70_000, 80_000
		data, err := sample.marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(data); err != nil {
			t.Fatal(err)
		}
	}
	deliver(t, forwarding(s, portal), 5)
	earlier, rebooted, running := portal.taken()[0], portal.taken()[1], portal.taken()[2]
	if earlier.KernelBootID != nil || earlier.SentUptimeMS != nil {
		t.Errorf("samples without uptimes: %+v", earlier)
	}
	if rebooted.KernelBootID == nil || rebooted.SentUptimeMS != nil {
		t.Errorf("samples of an earlier run of the kernel: %+v", rebooted)
	}
	if running.KernelBootID == nil || *running.KernelBootID != kernelBoot().String() {
		t.Errorf("samples of this run of the kernel: %+v", running)
	}
	if sent := running.SentUptimeMS; sent == nil || *sent < before || *sent > uptimeAt(time.Now()) {
		t.Errorf("sent at uptime %v, want %d or more", sent, before)
	}
	if s := running.Samples[0]; s.FromUptimeMS != 70_000 || s.ToUptimeMS != 80_000 {
		t.Errorf("got %+v", s)
	}
}

func TestSamplesBeyondTheLimitAreReportedAsDropped(t *testing.T) {
	s := openSpool(t, t.TempDir(), 4<<10)
	keep(t, s, bootID, false, upTo(200)...)
	portal := &stubPortal{}
	if _, err := forwarding(s, portal).deliverOne(t.Context()); err != nil {
		t.Fatal(err)
	}
	report := portal.reports[0]
	if report.Dropped == 0 || report.Samples[0].Seq != report.Dropped+1 {
		t.Errorf("dropped %d, and the first sample is %d", report.Dropped, report.Samples[0].Seq)
	}
}

// deliver sends reports until none is left or the portal does not respond.
func deliver(t *testing.T, f *deliverer, attempts int) {
	t.Helper()
	for range attempts {
		if sent, err := f.deliverOne(t.Context()); !sent && err == nil {
			break
		}
	}
}

// refusing returns a portal whose response depends on the sequence numbers of a report.
func refusing(answer func(seq []int64) error) *choosyPortal { return &choosyPortal{answer: answer} }

type choosyPortal struct {
	stubPortal
	answer func(seq []int64) error
}

func (p *choosyPortal) Post(ctx context.Context, kind string, report, answer any) error {
	var seq []int64
	for _, s := range report.(countersBody).Samples {
		seq = append(seq, s.Seq)
	}
	p.stubPortal.answer = func() error { return p.answer(seq) }
	return p.stubPortal.Post(ctx, kind, report, answer)
}

func TestOnlyASampleRefusedAloneIsDropped(t *testing.T) {
	timeout := fmt.Errorf("report: %w", context.DeadlineExceeded)
	for name, c := range map[string]struct {
		answer func(seq []int64) error
		lost   []int64
	}{
		"one of them is not valid": {func(seq []int64) error {
			if slices.Contains(seq, 7) {
				return &RefusedError{Status: 422}
			}
			return nil
		}, []int64{7}},
		"more than two are too large": {func(seq []int64) error {
			if len(seq) > 2 {
				return &RefusedError{Status: 413}
			}
			return nil
		}, nil},
		"more than three are too slow": {func(seq []int64) error {
			if len(seq) > 3 {
				return timeout
			}
			return nil
		}, nil},
		"a proxy gives up on more than one": {func(seq []int64) error {
			if len(seq) > 1 {
				return &statusError{504}
			}
			return nil
		}, nil},
		"each is too large": {func([]int64) error { return &RefusedError{Status: 413} }, upTo(25)},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSpool(t, t.TempDir(), 1<<20)
			keep(t, s, bootID, false, upTo(25)...)
			portal := refusing(c.answer)
			deliver(t, forwarding(s, portal), 200)
			want := slices.DeleteFunc(upTo(25), func(seq int64) bool { return slices.Contains(c.lost, seq) })
			if got := portal.got(bootID); !slices.Equal(got, want) || s.Dropped() != int64(len(c.lost)) || s.Waiting() != 0 {
				t.Errorf("got %v; %d dropped, %d wait", got, s.Dropped(), s.Waiting())
			}
		})
	}
}

func TestASampleThatIsTooSlowAloneIsKept(t *testing.T) {
	s := openSpool(t, t.TempDir(), 1<<20)
	keep(t, s, bootID, false, upTo(5)...)
	portal := refusing(func([]int64) error { return context.DeadlineExceeded })
	deliver(t, forwarding(s, portal), 20)
	if s.Waiting() != 5 || s.Dropped() != 0 {
		t.Errorf("%d wait, %d dropped", s.Waiting(), s.Dropped())
	}
}

// TestTheBacklogOfALargeRouterFitsThePortalsLimit: ten samples of this many policed ends are 48 MB, and the
// portal accepts 32 MiB.
func TestTheBacklogOfALargeRouterFitsThePortalsLimit(t *testing.T) {
	const portalTakes, policedEnds = 32 << 20, 10_400
	many := statseg.Count{Bytes: 1 << 50, Packets: 1 << 40}
	sample := Sample{FromMS: start.UnixMilli(), ToMS: start.UnixMilli() + 10_000}
	for n := range policedEnds {
		sample.Ends = append(sample.Ends, EndCount{
			Key: intent.Key{VLL: fmt.Sprintf("6f0b2c52-7c0e-4d3a-9a34-%012x", n), End: "a"}, In: many, Out: many,
			Policed: &Colours{many, many, many}, Dropped: Dropped{known(1 << 40), known(1 << 40)},
		})
	}
	s := openSpool(t, t.TempDir(), 256<<20)
	for seq := range int64(12) {
		sample.Seq = seq + 1
		data, err := (&storedSample{BootID: bootID, Sample: sample}).marshal()
		if err == nil {
			err = s.Append(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	portal := &stubPortal{}
	deliver(t, forwarding(s, portal), 50)
	if got := portal.got(bootID); !slices.Equal(got, upTo(12)) || s.Dropped() != 0 {
		t.Errorf("got %v, %d dropped", got, s.Dropped())
	}
	for _, report := range portal.taken() {
		data, err := json.Marshal(report)
		if err != nil || len(data) > portalTakes {
			t.Errorf("a report has %d bytes, %v", len(data), err)
		}
	}
}

func TestPausesGrowAndAreRandom(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := openSpool(t, folder, 1<<20)
		keep(t, s, bootID, false, 1)
		portal := &stubPortal{answer: func() error { return errors.New("away") }}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		forwarding(s, portal).run(ctx)
		distinct := make(map[time.Duration]bool)
		for i := range len(portal.requests) - 1 {
			wait := portal.requests[i+1].Sub(portal.requests[i])
			most := min(firstPause<<min(i, 10), longestPause)
			if wait < most/2 || wait > most {
				t.Errorf("pause %d is %s, not in %s..%s", i, wait, most/2, most)
			}
			distinct[wait] = true
		}
		if len(distinct) < 5 {
			t.Errorf("pauses are %v", distinct)
		}
	})
}

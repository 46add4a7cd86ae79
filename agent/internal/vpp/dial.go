package vpp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bfd"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"

	"longline.dev/agent/internal/durable"
)

// Info describes a VPP process. Its values do not change while the process runs.
type Info struct {
	Version string
	PID     uint32
	// BootMS is the start time of this VPP (ms since the Unix epoch), or 0 if its stats segment cannot be read.
	BootMS  int64
	Workers int
	// Plugins are the loaded plugins, sorted: "vxlan" for vxlan_plugin.so. Plugins is nil if VPP does not list
	// them.
	Plugins []string
}

// Simulated reports whether the process is not a VPP but vppsim, which simulates VPP's API and forwards no
// frames.
func (i Info) Simulated() bool { return strings.Contains(i.Version, "vppsim") }

// Dialer opens sessions.
type Dialer struct {
	Socket string
	// For an agent, Name is the result of AgentName. Only one agent can have a session with a VPP, so Dial
	// refuses a session if another agent uses the VPP. For programs that do not apply an intent, Name is
	// empty.
	Name string
	// Timeout is the longest time for which VPP may send nothing while a reply is pending. After that time the
	// session ends.
	Timeout time.Duration
	// BootMS reads VPP's boot time (ms since the Unix epoch). It is nil if no stats segment is used.
	BootMS func(context.Context) (int64, error)
	// Interfaces returns the number of interface indices that the VPP started at bootMS has assigned, and the
	// epoch of its stats segment (statseg.ReopeningSegment). It is nil if no stats segment is used.
	Interfaces func(bootMS int64) (indices int, epoch int64, err error)
}

// pingEvery is the time between two checks that VPP responds. The check is necessary because a VPP that hangs
// keeps its socket open.
const pingEvery = time.Second

// pathEvents is the number of BFD events that can wait to be handled. It is enough for several hundred paths
// that fail and recover together.
const pathEvents = 1024

// Dial opens a session, reads the identity of VPP and subscribes to its events. It returns *OtherAgentError,
// ErrTimeout or an error of the connection.
func (d Dialer) Dial(ctx context.Context) (*Session, error) {
	greeting, cancel := context.WithTimeoutCause(ctx, d.Timeout, ErrTimeout)
	defer cancel()
	return d.dial(ctx, greeting)
}

// dial does the same as Dial, but waits for VPP's first reply until greeting ends.
func (d Dialer) dial(ctx, greeting context.Context) (*Session, error) {
	var lock *os.File
	if d.Name != "" {
		var err error
		if lock, err = lockForOneAgent(d.Socket); err != nil {
			return nil, err
		}
	}
	sock, err := dialAPISocket(greeting, d.Socket, cmp.Or(d.Name, "longline-tool"))
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("connect to VPP at %s: %w", d.Socket, err)
	}
	s := &Session{
		sock:    sock,
		indices: d.Interfaces,
		lock:    lock,
		timeout: d.Timeout,
		types:   make(map[uint16]messageType),
		events:  make(chan *interfaces.SwInterfaceEvent, window),
		paths:   make(chan *bfd.BfdUDPSessionEvent, pathEvents),
		calls:   make(map[uint32]func(api.Message)),
		givenUp: make(map[uint32]bool),
		done:    make(chan struct{}),
		silent:  make(chan struct{}),
		left:    make(chan struct{}),
	}
	s.readMessageTypes()
	go s.receiveAll()
	if err := s.introduce(ctx, d.BootMS); err != nil {
		s.Close()
		return nil, err
	}
	go s.keepAlive(d.BootMS)
	return s, nil
}

// IsAbsent reports whether Dial failed because no process listens on the socket, which means that VPP does
// not run.
func IsAbsent(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
}

func (s *Session) readMessageTypes() {
	for _, messages := range api.GetRegisteredMessages() {
		for _, msg := range messages {
			if id, known := s.sock.table[key(msg)]; known {
				kind := msg.GetMessageType()
				// govpp mistakes feature_is_enabled_reply for a request because of the layout of the message.
				answers := kind == api.ReplyMessage || kind == api.RequestMessage && strings.HasSuffix(msg.GetMessageName(), "_reply")
				s.types[id] = messageType{kind, reflect.TypeOf(msg).Elem(), answers}
			}
		}
	}
}

func (s *Session) introduce(ctx context.Context, bootMS func(context.Context) (int64, error)) error {
	ping, err := s.Call(ctx, &memclnt.ControlPing{})
	if err != nil {
		return err
	}
	s.info.PID = ping.(*memclnt.ControlPingReply).VpePID
	version, err := s.Call(ctx, &vpe.ShowVersion{})
	if err != nil {
		return err
	}
	s.info.Version = strings.ToValidUTF8(version.(*vpe.ShowVersionReply).Version, "\uFFFD")
	if threads, err := s.Call(ctx, &vlib.ShowThreads{}); err == nil {
		s.info.Workers = max(0, len(threads.(*vlib.ShowThreadsReply).ThreadData)-1) // the first thread is the main thread
	} else if s.Err() != nil {
		return err
	}
	// No message lists the plugins: api_versions has no entries on 25.10 and 26.06.
	if listed, err := s.Call(ctx, &vlib.CliInband{Cmd: "show plugins"}); err == nil {
		s.info.Plugins = pluginsOf(listed.(*vlib.CliInbandReply))
	} else if s.Err() != nil {
		return err
	}
	if bootMS != nil {
		// Without the stats segment there are no counters, and the agent does not recognize objects that a crash
		// left without a tag. Everything else works.
		if at, err := bootMS(ctx); err == nil {
			s.info.BootMS = at
		}
	}
	for _, subscribe := range []api.Message{
		&interfaces.WantInterfaceEvents{EnableDisable: 1, PID: s.info.PID}, &bfd.WantBfdEvents{EnableDisable: true, PID: s.info.PID},
	} {
		if _, err := s.Call(ctx, subscribe); err != nil && s.Err() != nil {
			return err
		}
	}
	return nil
}

// pluginsOf parses the output of `show plugins`: "  1. vxlan_plugin.so   25.10-release   VxLan Tunnels".
func pluginsOf(reply *vlib.CliInbandReply) []string {
	if reply.Retval != 0 {
		return nil
	}
	var names []string
	for word := range strings.FieldsSeq(strings.ToValidUTF8(reply.Reply, "\uFFFD")) {
		if name, is := strings.CutSuffix(word, "_plugin.so"); is && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// errStatsAppeared ends a session that has no boot time, as soon as the boot time can be read. The next
// session then has the boot time.
var errStatsAppeared = errors.New("VPP's stats segment can be read now")

func (s *Session) keepAlive(bootMS func(context.Context) (int64, error)) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
			_, _ = s.Call(context.Background(), &memclnt.ControlPing{}) // a failure ends the session
			if s.info.BootMS == 0 && bootMS != nil {
				if _, err := bootMS(context.Background()); err == nil {
					s.fail(errStatsAppeared)
				}
			}
		}
	}
}

// AgentName returns the client name of a router's agent in VPP's list.
func AgentName(router string) string { return fmt.Sprintf("longline/%.50s", router) }

// OtherAgentError says that another agent works with this VPP. Two agents with different intents would undo
// each other's work indefinitely.
type OtherAgentError struct{ Folder string }

func (e *OtherAgentError) Error() string {
	return fmt.Sprintf("another agent works with this VPP: it has locked %s; one of the two has to be stopped", e.Folder)
}

// lockForOneAgent locks a VPP for the caller until the result is closed or the process ends in any way. It
// locks the folder of the API socket for two reasons: agents in other containers detect this lock too, and
// the lock needs no write permission. VPP's own list of clients is not suitable, because it may contain
// clients that have disconnected (dead_clients.go). It returns *OtherAgentError if another agent has the
// lock.
func lockForOneAgent(socket string) (*os.File, error) {
	folder := filepath.Dir(socket)
	lock, err := durable.Lock(folder)
	switch {
	case errors.Is(err, durable.ErrLocked):
		return nil, &OtherAgentError{folder}
	case err != nil:
		return nil, fmt.Errorf("the folder of VPP's API socket: %w", err)
	}
	return lock, nil
}

const (
	firstWait = 50 * time.Millisecond
	longWait  = 2 * time.Second
)

// ErrHangs says that VPP accepts connections but does not reply.
var ErrHangs = errors.New("VPP hangs: it accepts connections and answers nothing; restart it")

// Keeper contains the functions that KeepConnected calls.
type Keeper struct {
	Log *slog.Logger
	// Refused is called after every failed attempt and while VPP hangs. It receives the reason why there is
	// no session. It receives nil on success.
	Refused func(error)
	// Noticed receives the names of dead API clients whose end VPP has not noticed.
	Noticed func(names []string)
	// Use works with a session until its context ends. The context ends with the session.
	Use func(context.Context, *Session)
}

// KeepConnected keeps a session open until ctx ends. It dials, calls Use, waits for the end of the session,
// and starts again. The pause between failed attempts is at most 2 s.
func (d Dialer) KeepConnected(ctx context.Context, k Keeper) {
	wait := firstWait
	for ctx.Err() == nil {
		session, err := d.dialPatiently(ctx, k.Refused)
		k.Refused(err)
		if err != nil {
			k.Log.Warn("VPP cannot be used", "error", err, "retry_within", wait)
			pause(ctx, wait/2+rand.N(wait/2)) // the pause is random, so that two agents that exclude each other do not retry simultaneously
			wait = min(2*wait, longWait)
			continue
		}
		wait = firstWait
		k.Log.Info("connected to VPP", "version", session.info.Version, "pid", session.info.PID, "boot_ms", session.info.BootMS)
		if session.info.BootMS == 0 {
			k.Log.Warn("VPP's boot time cannot be read: no counters are reported, and no object is adopted after a crash")
		}
		go d.dropDeadClients(session, func(names []string) {
			k.Log.Warn("VPP had not noticed the end of API clients", "clients", names)
			k.Noticed(names)
		})
		serve(ctx, session, k.Use)
		k.Log.Warn("connection to VPP ended", "error", session.Err())
	}
}

// dialPatiently opens a session, and waits without a time limit until VPP responds. It makes only one
// connection, because a VPP that hangs would keep every further connection open. While VPP hangs, it calls
// the function refused with ErrHangs.
func (d Dialer) dialPatiently(ctx context.Context, refused func(error)) (session *Session, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		session, err = d.dial(ctx, ctx)
	}()
	timer := time.NewTimer(d.Timeout)
	defer timer.Stop()
	for {
		select {
		case <-ended:
			return session, err
		case <-timer.C:
			refused(ErrHangs)
		}
	}
}

func serve(ctx context.Context, session *Session, use func(context.Context, *Session)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, session.Close)
	defer stop()
	go func() {
		select {
		case <-session.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	use(ctx, session)
	session.Close()
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

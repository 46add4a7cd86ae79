// Package snmp provides VPP's interfaces to an SNMP agent: ifTable and ifXTable of the IF-MIB (RFC 2863).
// It is a subagent (AgentX, RFC 2741) of Net-SNMP's snmpd, which serves SNMP clients.
package snmp

import (
	"context"
	"log/slog"
	"time"
)

// Subagent keeps a session with a master agent.
type Subagent struct {
	Socket     string // path of the master's Unix socket
	Name       string // identifies the agent in the master's log
	Interfaces *Interfaces
	Log        *slog.Logger
}

// retryInterval is the pause between attempts to connect. A restart of snmpd takes about a second.
const retryInterval = 2 * time.Second

// Run serves the master until ctx ends. If there is no master, Run tries again after retryInterval. The rest
// of the agent works without a master.
func (a *Subagent) Run(ctx context.Context) {
	logged := ""
	for ctx.Err() == nil {
		err := a.serve(ctx, func() { logged = "" })
		if ctx.Err() != nil {
			return
		}
		if why := err.Error(); why != logged { // attempts are frequent, so the agent does not log the same error again
			a.Log.Warn("SNMP does not answer for VPP's interfaces; the agent keeps trying", "socket", a.Socket, "error", why)
			logged = why
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
	}
}

func (a *Subagent) serve(ctx context.Context, opened func()) error {
	s, err := dial(ctx, a.Socket, a.Interfaces.table)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	defer context.AfterFunc(ctx, func() { s.conn.Close() })() // the master detects the end of the session
	if err := s.begin(a.Name, a.Interfaces.Now); err != nil {
		return err
	}
	opened()
	a.Log.Info("SNMP answers for VPP's interfaces", "socket", a.Socket)
	return s.serve()
}

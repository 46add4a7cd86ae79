package snmp

import (
	"context"
	"log/slog"
	"time"
)

// Subagent keeps a session with a master agent.
type Subagent struct {
	Socket     string // the master's, a Unix socket
	Name       string // by which the master's log knows us
	Interfaces *Interfaces
	Log        *slog.Logger
}

// again is how long the next attempt waits: snmpd begins anew in about a second.
const again = 2 * time.Second

// Run serves until ctx ends. A master that is away or goes is nothing that the agent depends on: it is tried again.
func (a *Subagent) Run(ctx context.Context) {
	told := ""
	for ctx.Err() == nil {
		err := a.serve(ctx, func() { told = "" })
		if ctx.Err() != nil {
			return
		}
		if why := err.Error(); why != told { // it is tried every two seconds, and said once
			a.Log.Warn("SNMP does not answer for VPP's interfaces; the agent goes on trying", "socket", a.Socket, "error", why)
			told = why
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

func (a *Subagent) serve(ctx context.Context, opened func()) error {
	s, err := dial(ctx, a.Socket, a.Interfaces.table)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	defer context.AfterFunc(ctx, func() { s.conn.Close() })() // the master notices that we end
	if err := s.begin(a.Name, a.Interfaces.Now); err != nil {
		return err
	}
	opened()
	a.Log.Info("SNMP answers for VPP's interfaces", "socket", a.Socket)
	return s.serve()
}

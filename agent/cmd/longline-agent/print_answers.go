package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"longline.dev/agent/internal/server"
)

func printPlan(w io.Writer, p *server.PlanBody) {
	fmt.Fprintf(w, "generation %d: %d operations\n", p.Generation, len(p.Operations))
	for _, op := range p.Operations {
		fmt.Fprintf(w, "%5d  %-7s %s\n               # %s %s: %s (%s)\n", op.N, op.Stage, op.CLI, op.VLL, op.End, op.Why, op.Message)
	}
	if len(p.Ends) > 0 {
		fmt.Fprintf(w, "unchanged: %d ends\n", len(p.Ends))
	}
	for _, e := range p.Ends {
		fmt.Fprintf(w, "       %s %s  %s: %s\n", e.VLL, e.End, e.Status, describe(e.Reason))
	}
	printQuarantined(w, p.Quarantined)
}

func printState(w io.Writer, s *server.StateBody) {
	fmt.Fprintf(w, "router   %s\n", s.Router)
	switch {
	case !s.VPP.Connected:
		fmt.Fprintln(w, "VPP      not connected: its state is unknown")
	case s.VPP.Version != nil && s.VPP.BootMS != nil:
		fmt.Fprintf(w, "VPP      %s, started %s\n", *s.VPP.Version, moment(*s.VPP.BootMS))
	case s.VPP.Version != nil:
		fmt.Fprintf(w, "VPP      %s, start unknown (no stats segment)\n", *s.VPP.Version)
	}
	fmt.Fprintln(w, "stored  ", storedGeneration(s))
	if s.Applied == nil {
		fmt.Fprintln(w, "applied  nothing in this run of VPP")
	} else {
		fmt.Fprintf(w, "applied  generation %d at %s\n", s.Applied.Generation, moment(s.Applied.AtMS))
	}
	if s.Freeze != nil {
		fmt.Fprint(w, "frozen   ")
		printFreeze(w, s.Freeze)
	}
	for _, aside := range s.SetAside {
		fmt.Fprintf(w, "unread   %s: %s\n", aside.Path, aside.Why)
	}
	fmt.Fprintf(w, "\nowned: %d\n", len(s.Owned))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, o := range s.Owned {
		fmt.Fprintf(t, "  %s\t%s\tr%d\t%s\t%s\t%d\n", o.VLL, o.End, o.Revision, o.Kind, o.Interface, o.SwIfIndex)
	}
	_ = t.Flush() // cannot fail, because t writes to a buffer
	fmt.Fprintf(w, "conflicts: %d\n", len(s.Conflicts))
	for _, c := range s.Conflicts {
		fmt.Fprintf(w, "  %s %s  %s\n", c.VLL, c.End, describe(c.Reason))
	}
	fmt.Fprintf(w, "drift: %d\n", len(s.Drift))
	for _, d := range s.Drift {
		fmt.Fprintf(w, "  %s %s  %s of %s is %q, intended %q\n", d.VLL, d.End, d.Field, d.Object, d.Actual, d.Desired)
	}
	printQuarantined(w, s.Quarantined)
	fmt.Fprintf(w, "relabelled: %d\n", len(s.Relabelled))
	for _, r := range s.Relabelled {
		fmt.Fprintf(w, "  %s %s  %s (sw_if_index %d) has %s\n", r.VLL, r.End, r.Interface, r.SwIfIndex, tag(r))
	}
	fmt.Fprintf(w, "watched paths: %d\n", len(s.Paths))
	for _, p := range s.Paths {
		fmt.Fprintf(w, "  %s to %s  %s since %s%s\n", p.Local, p.Remote, p.State, moment(p.SinceMS), remark(p))
	}
}

func remark(p server.PathBody) string {
	switch {
	case p.Detail != "":
		return ": " + p.Detail
	case p.Foreign:
		return ", by a foreign BFD session"
	}
	return ""
}

func tag(r server.RelabelledBody) string {
	if r.Tag == "" {
		return "no tag"
	}
	return fmt.Sprintf("the tag %q", r.Tag)
}

func printQuarantined(w io.Writer, all []server.QuarantinedBody) {
	fmt.Fprintf(w, "quarantined: %d\n", len(all))
	for _, q := range all {
		fmt.Fprintf(w, "  %s %s  %s\n", q.VLL, q.End, q.Interface)
	}
}

func storedGeneration(s *server.StateBody) string {
	if s.Stored == nil {
		return "nothing"
	}
	return fmt.Sprintf("generation %d (sha256 %s)", s.Stored.Generation, s.Stored.SHA256)
}

func describe(r *server.ReasonBody) string {
	if r == nil {
		return "no reason given"
	}
	if r.Object != nil {
		return fmt.Sprintf("%s: %s [%s]", r.Code, r.Message, *r.Object)
	}
	return r.Code + ": " + r.Message
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

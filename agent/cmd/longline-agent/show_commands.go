package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"longline.dev/agent/internal/server"
	"longline.dev/agent/internal/vppcfg"
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

// portalView is the part of the portal's view of a line that is printed.
type portalView struct {
	Description, Customer, Lifecycle, Verdict string
	CIRBPS                                    int64 `json:"cir_bps"`
	Checks                                    []check
}

type check struct{ Code, State, Evidence string }

// runLine shows the state of a line on this router, and what the portal knows about the line.
func runLine(ctx context.Context, args []string, stdout io.Writer) error {
	of, args := lineName(args)
	flags := newCommand()
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	if of == "" {
		return &usageError{"line needs the line's id, the beginning of it, or its name"}
	}
	return call(ctx, flags, "/v1/line?of="+url.QueryEscape(of), nil, stdout, printLine)
}

func printLine(w io.Writer, l *server.LineBody) {
	fmt.Fprintf(w, "line     %s\n", l.VLL)
	var p *portalView
	// The portal may be of another release. If its part cannot be read, the state of the router is shown alone.
	if err := json.Unmarshal(l.Portal, &p); err == nil && p != nil {
		fmt.Fprintf(w, "         %s, of %s, %s, %.10g Mbit/s\n%s\n", cmp.Or(p.Description, "-"), p.Customer, p.Lifecycle, float64(p.CIRBPS)/1e6, p.Verdict)
	} else {
		fmt.Fprintf(w, "portal   %s\n", l.PortalError)
	}
	if len(l.Ends) == 0 {
		fmt.Fprintln(w, "here     nothing: the stored intent has no end of this line")
	}
	for _, e := range l.Ends {
		fmt.Fprintf(w, "\nend %s    revision %d on %s%s\n", e.End, e.Revision, e.Port, setAs(e.AdminUp, e.Testing, e.UNILinkDown))
		if e.Local != nil {
			fmt.Fprintf(w, "  %s from %s to %s%s%s%s\n", e.Transport, *e.Local, *e.Remote, inTable(e.Table), keyed(e.Key), watched(e.Path))
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, i := range e.Interfaces {
			fmt.Fprintf(t, "  %s\t%s\t%d\tadmin %s\tlink %s\n", i.Kind, i.Name, i.SwIfIndex, upOrDown(i.AdminUp), upOrDown(i.LinkUp))
		}
		_ = t.Flush() // cannot fail, because t writes to a buffer
		if r := e.Rates; r != nil {
			fmt.Fprintf(w, "  now: %.4g Mbit/s in (%d frames/s), %.4g Mbit/s out (%d frames/s)\n", float64(r.InBPS)/1e6, r.InFrames, float64(r.OutBPS)/1e6, r.OutFrames)
		}
		if e.Reason != nil {
			fmt.Fprintf(w, "  %s\n", describe(e.Reason))
		}
		for _, d := range e.Drift {
			fmt.Fprintf(w, "  differs: %s of %s is %q and not %q\n", d.Field, d.Object, d.Actual, d.Desired)
		}
	}
	if p != nil {
		printChecks(w, p.Checks)
	}
}

// printChecks lists the portal's checks. The failed checks come first.
func printChecks(w io.Writer, checks []check) {
	slices.SortStableFunc(checks, func(x, y check) int { return rank(x.State) - rank(y.State) })
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.State, c.Code, c.Evidence)
	}
	_ = t.Flush() // cannot fail, because t writes to a buffer
}

func rank(state string) int { return slices.Index([]string{"broken", "unknown", "ok"}, state) }

func setAs(adminUp, testing, uniLinkDown bool) string {
	switch {
	case testing:
		return ", being tested"
	case !adminUp:
		return ", suspended"
	case uniLinkDown:
		return ", to be down for the far end's link"
	}
	return ""
}

func inTable(table uint32) string {
	if table == 0 {
		return ""
	}
	return fmt.Sprintf(" in table %d", table)
}

func keyed(key *uint32) string {
	if key == nil {
		return ""
	}
	return fmt.Sprintf(", key %d", *key)
}

func watched(path *string) string {
	if path == nil {
		return ""
	}
	return ", path " + *path
}

func upOrDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// partlyNamedError means that the output was printed but lacks the names of some objects.
type partlyNamedError struct{ unnamed []vppcfg.Unnamed }

func (e *partlyNamedError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d interfaces cannot be named in a file of vppcfg:", len(e.unnamed))
	for _, u := range e.unnamed {
		fmt.Fprintf(&text, "\n  %s of line %s, end %s\n    %s\n    %s", u.Name, u.VLL, u.End, u.Why, u.Consequence())
	}
	return text.String()
}

// runVppcfg prints the entries that a vppcfg file needs. It prints the entries alone, or the
// operator's file with these entries added.
func runVppcfg(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newCommand()
	with := flags.String("with", "", "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	if *flags.asJSON && *with != "" {
		return &usageError{"vppcfg prints either the agent's response with -json, or YAML with -with FILE"}
	}
	var file []byte
	if *with != "" {
		var err error
		if file, err = readInput(*with, math.MaxInt64); err != nil {
			return err
		}
	}
	answer, err := request(ctx, *flags.config, http.MethodGet, "/v1/vppcfg", nil)
	if err != nil {
		return err
	}
	part := &vppcfg.Part{}
	if err := json.Unmarshal(answer, part); err != nil {
		return fmt.Errorf("the agent's response: %w", err)
	}
	text := answer
	switch {
	case *with != "":
		if text, err = part.Merge(file); err != nil {
			return fmt.Errorf("%s and this router's lines cannot be one file of vppcfg; nothing is printed:\n%w", *with, err)
		}
	case !*flags.asJSON:
		if text, err = part.Text(); err != nil {
			return err
		}
	}
	if _, err := stdout.Write(text); err != nil {
		return err
	}
	if len(part.Unnamed) > 0 {
		return &partlyNamedError{part.Unnamed}
	}
	return nil
}

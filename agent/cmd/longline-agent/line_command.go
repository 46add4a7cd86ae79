package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"text/tabwriter"

	"longline.dev/agent/internal/server"
)

// shownLine is the response about a line. Portal hides the undecoded member of the same name.
type shownLine struct {
	server.LineBody
	Portal *portalView `json:"portal"`
}

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

func printLine(w io.Writer, l *shownLine) {
	fmt.Fprintf(w, "line     %s\n", l.VLL)
	if p := l.Portal; p != nil {
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
	if l.Portal != nil {
		printChecks(w, l.Portal.Checks)
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

package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/enroll"
	"longline.dev/agent/internal/freeze"
	"longline.dev/agent/internal/server"
)

func endFlags(flags command) (vll, end *string) {
	return flags.String("vll", "", ""), flags.String("end", "", "")
}

func isEnd(vll, end string) bool { return vll != "" && (end == "a" || end == "z") }

// deciding returns a command that sends an operator's decision to the agent. The decision (claim or release) is
// about interfaces whose tags another user has changed.
func deciding(decision string, print func(io.Writer, *server.DecidedBody)) runner {
	return func(ctx context.Context, args []string, stdout io.Writer) error {
		flags := newCommand()
		vll, end := endFlags(flags)
		name := flags.String("interface", "", "")
		if err := parse(flags.FlagSet, args); err != nil {
			return err
		}
		if !isEnd(*vll, *end) {
			return &usageError{decision + " needs -vll UUID and -end a or z"}
		}
		body := map[string]string{"vll": *vll, "end": *end, "interface": *name}
		return call(ctx, flags, "/v1/"+decision, body, stdout, print)
	}
}

func printClaimed(w io.Writer, d *server.DecidedBody) {
	for _, r := range d.Relabelled {
		fmt.Fprintf(w, "%s (sw_if_index %d) has the tag of %s:%s again; it had %s\n", r.Interface, r.SwIfIndex, r.VLL, r.End, tag(r))
	}
}

func printReleased(w io.Writer, d *server.DecidedBody) {
	for _, r := range d.Relabelled {
		fmt.Fprintf(w, "%s (sw_if_index %d) is yours and stays unchanged; it belonged to %s:%s and has %s\n", r.Interface, r.SwIfIndex, r.VLL, r.End, tag(r))
	}
}

// runRebuild requests a rebuild: the agent deletes the sub-interface of an end and creates it again.
func runRebuild(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newCommand()
	vll, end := endFlags(flags)
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	if !isEnd(*vll, *end) {
		return &usageError{"rebuild needs -vll UUID and -end a or z"}
	}
	return call(ctx, flags, "/v1/rebuild", map[string]string{"vll": *vll, "end": *end}, stdout, func(w io.Writer, a *server.RebuildBody) {
		fmt.Fprintf(w, "the sub-interface of %s:%s will be deleted and created again as soon as the agent has no other work; an event in the portal confirms it\n", a.VLL, a.End)
	})
}

func runFreeze(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newCommand()
	reason := flags.String("reason", "", "")
	lasting := flags.Duration("for", 0, "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	if strings.TrimSpace(*reason) == "" || *lasting < time.Second {
		return &usageError{"freeze needs -reason TEXT and -for DURATION, such as 2h30m"}
	}
	body := map[string]any{"reason": *reason, "seconds": int64(*lasting / time.Second)}
	return call(ctx, flags, "/v1/freeze", body, stdout, printFreeze)
}

func printFreeze(w io.Writer, f *freeze.Shown) {
	if f.Over {
		fmt.Fprintf(w, "the freeze by the %s (%s) is over; differences are not repaired until an operator acknowledges them in the portal\n", f.By, f.Reason)
		return
	}
	fmt.Fprintf(w, "frozen by the %s until %s: %s\n", f.By, time.UnixMilli(f.UntilMS).UTC().Format(time.RFC3339), f.Reason)
}

// runCalibrate lets the agent measure how much CPU each encapsulation needs on this router.
func runCalibrate(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newCommand()
	withLines := flags.Bool("with-lines", false, "")
	// Scripts of release 0.1.0 use the earlier name.
	flags.BoolVar(withLines, "beside-lines", false, "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	return call(ctx, flags, "/v1/calibration", map[string]any{"schema": 1, "beside_lines": *withLines}, stdout, printCalibration)
}

func printCalibration(w io.Writer, c *server.CalibrationBody) {
	fmt.Fprintf(w, "%s, VPP %s, measured %s\n", c.Router, c.VPPVersion, time.UnixMilli(c.MeasuredMS).UTC().Format(time.RFC3339))
	fmt.Fprintf(w, "%s, %.0f million clocks in a second; %d rounds of %d frames of 64 bytes\n", c.CPU, c.ClockHz/1e6, c.Rounds, c.Frames)
	base := 0.0
	if len(c.Figures) > 0 && c.Figures[0].Transport == "l2xc" {
		base = c.Figures[0].Clocks
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "transport\tclocks per frame\tleast\tmost\tto l2xc\tns more than l2xc\t\n")
	for _, f := range c.Figures {
		ratio, more := "-", "-"
		if base > 0 {
			ratio = fmt.Sprintf("%.2f", f.Clocks/base)
		}
		if base > 0 && c.ClockHz > 0 {
			more = fmt.Sprintf("%.1f", (f.Clocks-base)/c.ClockHz*1e9)
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%s\t%s\t\n", f.Transport, f.Clocks, f.Least, f.Most, ratio, more)
	}
	_ = t.Flush() // cannot fail, because t writes to a buffer
	for _, m := range c.Missing {
		fmt.Fprintf(w, "%s is not measured: this VPP has no message %s\n", m.Transport, m.Message)
	}
}

// runTrace shows packets of a line, as VPP's packet tracer recorded them.
func runTrace(ctx context.Context, args []string, stdout io.Writer) error {
	of, args := lineName(args)
	flags := newCommand()
	packets := flags.Int("packets", 10, "")
	seconds := flags.Int("seconds", 5, "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	switch {
	case of == "":
		return &usageError{"trace needs the line's id, the beginning of it, or its name"}
	case *packets < 1 || *packets > 50:
		return &usageError{"-packets must be 1 to 50"}
	case *seconds < 1 || *seconds > 30:
		return &usageError{"-seconds must be 1 to 30"}
	}
	body := map[string]any{"schema": 1, "of": of, "packets": *packets, "seconds": *seconds}
	return call(ctx, flags, "/v1/trace", body, stdout, printTrace)
}

func printTrace(w io.Writer, t *server.TraceBody) {
	fmt.Fprintf(w, "line     %s\n", t.VLL)
	fmt.Fprintf(w, "         %d packets of this line, among the first %d that the tracer captured\n", len(t.Packets), t.Examined)
	for _, p := range t.Packets {
		fmt.Fprintf(w, "\n%s by %s\n", p.At, p.From)
		for _, n := range p.Nodes {
			fmt.Fprintf(w, "  %s\n", n.Name)
			for _, line := range n.Says {
				fmt.Fprintf(w, "    %s\n", line)
			}
		}
	}
}

// maxToken limits the size of a token, in bytes. The portal's tokens are shorter.
const maxToken = 4096

func runEnroll(ctx context.Context, args []string, stdout io.Writer) error {
	flags := quietFlags()
	configPath := flags.String("config", defaultConfig, "")
	portal := flags.String("portal", "", "")
	tokenFile := flags.String("token-file", "", "")
	trust := enroll.Trust{}
	flags.StringVar(&trust.CAFile, "ca", "", "")
	flags.StringVar(&trust.Fingerprint, "ca-fingerprint", "", "")
	replace := flags.Bool("replace", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := checkEnroll(*portal, *tokenFile, trust); err != nil {
		return err
	}
	c, err := config.Load(*configPath)
	if err != nil {
		return err
	}
	now := time.Now()
	if current := enroll.Current(c.TLS, c.Router, now); current != nil && !*replace {
		_, err := fmt.Fprintf(stdout, "%s has a certificate until %s; nothing was done (-replace requests another)\n",
			c.Router, current.NotAfter.UTC().Format(time.RFC3339))
		return err
	}
	token, err := readToken(*tokenFile)
	if err != nil {
		return err
	}
	certificate, err := enroll.Enroll(ctx, enroll.Options{
		Router: c.Router, Files: c.TLS, Portal: *portal, Trust: trust, Token: token, Now: now,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s is enrolled until %s\n  serial       %x\n  certificate  %s\n  key          %s\n  CA           %s\n",
		c.Router, certificate.NotAfter.UTC().Format(time.RFC3339), certificate.SerialNumber,
		c.TLS.Certificate, c.TLS.Key, c.TLS.CA)
	return err
}

func checkEnroll(portal, tokenFile string, trust enroll.Trust) error {
	if portal == "" || tokenFile == "" {
		return &usageError{"enroll needs -portal URL and -token-file FILE"}
	}
	if u, err := url.Parse(portal); err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return &usageError{fmt.Sprintf("-portal: %q is not the https URL of a portal", portal)}
	}
	if trust.CAFile != "" && trust.Fingerprint != "" {
		return &usageError{"-ca and -ca-fingerprint exclude each other"}
	}
	if trust.Fingerprint != "" {
		if _, err := enroll.ParseFingerprint(trust.Fingerprint); err != nil {
			return &usageError{"-ca-fingerprint: " + err.Error()}
		}
	}
	return nil
}

// readToken reads the token from a file. The token is not a command-line argument, because all users can see
// arguments with ps(1).
func readToken(path string) (string, error) {
	text, err := readInput(path, maxToken)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("%s contains no token", path)
	}
	return token, nil
}

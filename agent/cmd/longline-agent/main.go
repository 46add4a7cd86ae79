// Command longline-agent configures the VPP of this machine according to the portal's intent, and reports
// the state of VPP to the portal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"longline.dev/agent/internal/config"
	"longline.dev/agent/internal/procmem"
)

// version is the version in pyproject.toml. The linker sets it (Makefile).
var version = "dev"

const (
	// releases are the VPP releases whose API messages were compared with the messages that the agent uses.
	// At run time, the agent finds out from VPP's message table which messages are missing.
	releases      = "23.10 to 26.06"
	defaultConfig = "/etc/longline/agent.yaml"
)

func main() {
	debug.SetGCPercent(procmem.GCPercent)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		os.Exit(explain(err))
	}
}

// explain prints an error that has not been logged. It returns the exit status.
func explain(err error) int {
	if _, logged := errors.AsType[*loggedError](err); logged {
		return 1
	}
	if _, usage := errors.AsType[*usageError](err); usage {
		fmt.Fprintln(os.Stderr, "longline-agent:", err, "(see longline-agent -help)")
		return 2
	}
	fmt.Fprintln(os.Stderr, "longline-agent:", err)
	if _, partly := errors.AsType[*partlyNamedError](err); partly {
		return 3
	}
	return 1
}

type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

type loggedError struct{ error }

// runner runs a command.
type runner func(ctx context.Context, args []string, stdout io.Writer) error

var commands = map[string]runner{
	"plan": runPlan, "state": requesting("/v1/state", nil, printState), "line": runLine, "trace": runTrace,
	"claim": deciding("claim", printClaimed), "release": deciding("release", printReleased), "rebuild": runRebuild, "calibrate": runCalibrate,
	"freeze": runFreeze, "unfreeze": requesting("/v1/unfreeze", struct{}{}, printFreeze),
	"vppcfg": runVppcfg, "health": runHealth, "enroll": runEnroll,
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if slices.ContainsFunc(args, isHelpFlag) || len(args) > 0 && args[0] == "help" {
		printHelp(stdout)
		return nil
	}
	if len(args) > 0 && commands[args[0]] != nil {
		return commands[args[0]](ctx, args[1:], stdout)
	}
	flags := quietFlags()
	path := flags.String("config", defaultConfig, "")
	showVersion := flags.Bool("version", false, "")
	checkOnly := flags.Bool("check-config", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if *showVersion {
		_, err := fmt.Fprintf(stdout, "longline-agent %s\nVPP releases supported: %s\n", version, releases)
		return err
	}
	c, err := config.Load(*path)
	if err != nil {
		return err
	}
	if *checkOnly {
		_, err := fmt.Fprintf(stdout, "%s is valid\n", *path)
		return err
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil)).With("router", c.Router)
	if err := serve(ctx, c, log); err != nil {
		log.Error("the agent ends", "error", err)
		return &loggedError{err}
	}
	return nil
}

// isHelpFlag reports whether an argument requests the help text. All commands share one help text.
func isHelpFlag(arg string) bool { return arg == "-help" || arg == "--help" || arg == "-h" }

// quietFlags returns a flag set that prints nothing. The caller prints the help text.
func quietFlags() *flag.FlagSet {
	flags := flag.NewFlagSet("longline-agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return &usageError{err.Error()}
	}
	if flags.NArg() > 0 {
		return &usageError{fmt.Sprintf("%q is no command and no option", flags.Arg(0))}
	}
	return nil
}

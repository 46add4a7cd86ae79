package main

import (
	"fmt"
	"io"

	"longline.dev/agent/internal/config"
)

const manualHead = `NAME
  longline-agent - brings the VPP of this machine to what the Longline portal intends

SYNOPSIS
  longline-agent [-config FILE] [-check-config]
  longline-agent plan -intent FILE [-json] [-config FILE]
  longline-agent state [-json] [-config FILE]
  longline-agent -version | -help

DESCRIPTION
  Without a command the agent runs in the foreground until SIGTERM or SIGINT. It takes the whole router's
  intent from the portal over HTTPS, brings VPP to it, reads VPP back, repairs what differs, and reports
  counters, observations and events. It changes and deletes only what it made and tagged itself. Stopping it
  stops no traffic; started again, or after VPP was restarted, it applies the intent it holds by itself.

  plan    shows what applying the intent in FILE would do now, in order: stage, the equivalent line of VPP's
          CLI, and why. Nothing is written.
  state   shows which intent is held and applied, what the agent owns in VPP, what is in conflict, what
          differs from the intent, and what is quarantined. Nothing is written.

  Both ask the agent that runs with the same configuration, over its control socket, which only the agent's
  user and root may use.

OPTIONS
  -config FILE    the configuration (default ` + defaultConfig + `)
  -check-config   check the configuration, name every error by its key, and exit
  -intent FILE    an intent document as in the portal's PUT /v1/intent; /dev/stdin reads standard input
  -json           print the agent's answer as it came (docs/agent-api.md)
  -version        print the version and the VPP releases supported, and exit
  -help           print this text, and exit

CONFIGURATION
  A YAML file; a dot below stands for a section. Relative paths are relative to the file's folder.
  No other keys are accepted.

`

const manualTail = `
FILES
  state_dir/intent.json     the intent held
  state_dir/journal.json    what the agent was about to make; lets it know its own after a crash
  state_dir/counters/       counter samples that the portal has not taken
  state_dir/events/         events that the portal has not taken
  state_dir/control.sock    control socket
  state_dir/lock            locked while an agent runs

EXIT STATUS
  0 done or stopped by a signal; 1 failed; 2 the command line was wrong

LOGS
  JSON lines on standard error

VPP
  Releases ` + releases + `. What a VPP can do is read from its message table, not from its version: what it
  lacks is reported, and a VLL end that needs it answers failed/unsupported.
`

func manual(w io.Writer) {
	fmt.Fprint(w, manualHead)
	config.Reference(w)
	fmt.Fprint(w, manualTail)
}

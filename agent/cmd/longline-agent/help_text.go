package main

import (
	"fmt"
	"io"

	"longline.dev/agent/internal/config"
)

const helpHead = `NAME
  longline-agent - configures the VPP of this machine as the Longline portal intends

SYNOPSIS
  longline-agent [-config FILE] [-check-config]
  longline-agent plan -intent FILE [-json] [-config FILE]
  longline-agent state [-json] [-config FILE]
  longline-agent line ID|NAME [-json] [-config FILE]
  longline-agent trace ID|NAME [-packets N] [-seconds N] [-json] [-config FILE]
  longline-agent claim -vll UUID -end a|z [-interface NAME] [-json] [-config FILE]
  longline-agent release -vll UUID -end a|z [-interface NAME] [-json] [-config FILE]
  longline-agent rebuild -vll UUID -end a|z [-json] [-config FILE]
  longline-agent calibrate [-with-lines] [-json] [-config FILE]
  longline-agent freeze -reason TEXT -for DURATION [-json] [-config FILE]
  longline-agent unfreeze [-json] [-config FILE]
  longline-agent vppcfg [-with FILE] [-json] [-config FILE]
  longline-agent health [-ready] [-config FILE]
  longline-agent enroll -portal URL -token-file FILE [-ca FILE | -ca-fingerprint SHA256] [-replace] [-config FILE]
  longline-agent -version | -help

DESCRIPTION
  Without a command the agent runs in the foreground until SIGTERM or SIGINT. It receives the intent for the
  whole router from the portal over HTTPS and configures VPP accordingly. It reads VPP back, repairs
  differences, and reports counters, observations and events. It changes and deletes only objects that it
  created and tagged itself. Stopping the agent stops no traffic. After a restart of the agent or of VPP, the
  agent applies its stored intent automatically.

  plan    shows what applying the intent in FILE would do now, in order: stage, equivalent VPP CLI command, and
          reason. It changes nothing.

  state   shows the stored and the applied intent, the agent's objects in VPP, conflicts, differences from the
          intent, quarantined objects, and relabelled objects. It changes nothing.

  line    shows a line by its ID, by the first 8 or more characters of its ID, or by its name: its state on this
          router, its current traffic, differences from the intent, and the portal's view of the line with the
          last test. Without the portal the command finds lines only by ID. It changes nothing.

  trace   shows packets of this line in both directions as VPP's tracer records them: headers, node by node, and
          no payload. The tracer captures all received packets, 50 by each kind of port every quarter of a
          second (all threads together, each at least 1). The agent discards packets of other lines unread. On
          a busy router the packets of a quiet line may be missing. Each capture stops VPP's workers for 2 to
          5 ms, which can cost frames on a port that receives more than 200,000 frames per second. While the
          tracer contains packets of another user, the command does nothing. A trace by another user that has
          not captured a packet yet cannot be detected, and ends. The tracer is cleared at the end, also after
          Ctrl-C. If the agent is killed during the trace, clear the tracer with: vppctl clear trace
          The command also works on a frozen router, because it configures nothing.

  claim   restores the agent's tag on an interface of a line's end whose tag another user has cleared or
          replaced. Until then the agent does not change the interface, and the end has the conflict
          "relabelled". Afterwards the agent continues with the line or with its removal.

  release gives up such an interface instead: the agent forgets that it created the interface. The interface
          keeps its configuration, without the line's policer, and is yours. When the line is removed, the
          agent reports the end as removed, and the portal may assign its VNI and VLAN to other lines.
          claim and release apply to all interfaces of the end that state lists as relabelled, or to one.

  calibrate
          measures how much CPU each encapsulation takes on this router: the clocks per frame of the nodes of
          VPP's graph between a port and a tunnel. VPP's packet generator sends the frames through a loop in a
          separate table, which the agent creates and removes. No frame leaves the router or reaches a port.
          It takes some seconds. Meanwhile the agent changes nothing for lines, and repeatedly clears VPP's
          runtime counters (show runtime). The portal must have the router under maintenance, and no line may
          carry frames here; otherwise the command does nothing. With -with-lines it runs regardless of
          lines: their frames are delayed by up to a millisecond, some may be lost, and they distort the
          figures. The NOC can use the figures as this router's profile: enter the output of -json on the
          router's page in the portal.

  rebuild deletes the sub-interface of one end and creates it again with all its settings. It loses frames for a
          moment. Use it if the portal shows that VPP drops frames of a line although they have its VLAN, and
          the agent could not repair that. The agent itself rebuilds an end only once, and only after VPP's
          tracer has shown such frames.

  freeze  leaves VPP unchanged for a while, also after restarts of the agent and of VPP. The agent reads and
          reports VPP, but creates, changes, repairs, removes and tests nothing. The portal shows the freeze,
          and orders wait. If anything differs afterwards, nothing is repaired until an operator has
          acknowledged the differences in the portal.

  unfreeze
          ends a freeze early, also a freeze by the portal.

  vppcfg  prints as YAML the entries that a file of vppcfg (0.0.7) needs, so that vppcfg does not remove the
          agent's objects. With -with FILE it prints the operator's own FILE with these entries, because vppcfg
          reads only one file. Comments of FILE stay. If FILE has conflicting entries, the command lists them
          and prints nothing else. Objects that vppcfg cannot name (GENEVE; GRE on ports with a lower MTU than
          GRE's) are listed in comments and on standard error, with the effect. With vpp.vppcfg: present in the
          agent's configuration, vppcfg finds nothing to change. The command changes nothing.

  health  exits with 0 if the agent runs; with -ready, if it is connected to VPP and its intent is applied.

  These commands send a request to the agent that runs with the same configuration, over its control socket.
  Only the agent's user and root may use that socket.

  enroll  obtains this router's certificate. It makes a private key, which never leaves this machine, and sends
          a certificate request with the one-time token that the NOC created on the router's page (valid for 24
          hours). It stores key, certificate and CA, with mode 0600, in the configured places: all three or
          none. Run it as the agent's user, in a folder that this user may write.
          After an interruption run it again with the same token: the key is kept until its certificate arrives,
          and the portal answers the same token and key with the same certificate. If there is a valid
          certificate, the command does nothing, unless -replace is given. A running agent uses the new
          certificate for its next connection. Restart the agent if the CA has changed.

OPTIONS
  -config FILE    the configuration (default ` + defaultConfig + `)
  -check-config   check the configuration, name every error by its key, and exit
  -intent FILE    an intent document as in the portal's PUT /v1/intent; /dev/stdin reads standard input
  -vll UUID       the ID of the line, as state and the portal show it
  -end a|z        its end on this router
  -interface NAME only this interface
  -json           print the agent's response unchanged (docs/reference/agent-requests.md)
  -packets N      the largest number of packets, 1 to 50 (default 10)
  -seconds N      the longest duration of the trace, 1 to 30 (default 5)
  -reason TEXT    the reason, which the portal and the agent show
  -for DURATION   the longest duration: 45m, 2h30m; up to 720h
  -with FILE      print FILE with the entries that vppcfg needs; /dev/stdin reads standard input
  -with-lines     calibrate although lines carry frames here
  -ready          also require that the intent is applied
  -portal URL     https URL of the portal's web pages
  -token-file FILE
                  file with the enrolment token; /dev/stdin reads standard input
  -ca FILE        PEM file with the CAs to trust for the portal's web pages, instead of this machine's
  -ca-fingerprint SHA256
                  trust the certificate with this SHA-256 fingerprint (64 hexadecimal digits, colons
                  allowed) instead of this machine's CAs: the portal's, or that of a CA which it sends
  -replace        replace a valid certificate, with a new key: before the certificate expires, or after it
                  was revoked
  -version        print the version and the VPP releases supported, and exit
  -help           print this text, and exit

CONFIGURATION
  A YAML file; a dot below separates sections. Relative paths are relative to the file's folder.
  No other keys are accepted.

`

const helpTail = `
FILES
  state_dir/intent.json     the stored intent
  state_dir/journal.json    objects that the agent is creating; identifies them after a crash
  state_dir/tagged.log      objects that the agent tagged in this run of VPP; identifies them if they are relabelled
  state_dir/counters/       counter samples that the portal has not accepted yet
  state_dir/events/         events that the portal has not accepted yet
  state_dir/*.set-aside     a file that could not be read at a start; inspect and remove it
  state_dir/freeze.json     the freeze, until an operator has acknowledged its differences
  state_dir/rebuilds.json   rebuilt sub-interfaces, until frames arrive; prevents another rebuild after a restart
  state_dir/reserve         reserved space for intent and journal, used when the disk is full
  state_dir/control.sock    control socket
  state_dir/lock            locked while an agent runs
  tls.key with .new         the key that waits for its certificate, after an interrupted enrolment

SIGNALS
  SIGTERM, SIGINT   stop: accept no new work, finish the running reconciliation (at most 75 s), then close;
                    unsent reports are on disk

EXAMPLES
  longline-agent -check-config -config agent.yaml
        checks a changed configuration before the agent is restarted
  longline-agent plan -intent intent.json
        shows what a document would change in this VPP; with state_dir/intent.json: the current differences
  longline-agent state -json | jq '.conflicts'
        lists the conflicts of each line
  longline-agent line Cheese cellar
        shows the state and the current traffic of this line
  longline-agent trace Cheese cellar -packets 5
        shows the nodes of VPP's graph that its packets pass
  longline-agent claim -vll 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01 -end a
        continues after another user cleared the tags of this line by mistake
  longline-agent rebuild -vll 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01 -end a
        creates the sub-interface again after VPP dropped frames of this line as frames of an unknown VLAN
  longline-agent freeze -reason "new line cards" -for 2h
        before manual changes to this VPP
  longline-agent calibrate -json > profile.json
        measures the CPU use of encapsulations, for the router's page in the portal
  longline-agent vppcfg -with /etc/vpp/vppcfg.yaml > /tmp/all.yaml && vppcfg plan -c /tmp/all.yaml
        shows what vppcfg would change, except lines
  longline-agent enroll -portal https://portal.example.net -token-file /dev/stdin
        requests the first certificate; the typed token does not get into the shell's history

EXIT STATUS
  0 done or stopped by a signal; 1 failed; 2 the command line was wrong; 3 vppcfg printed, but some objects have no name

LOGS
  JSON lines on standard error; errors of the command line or the configuration are plain text

VPP
  Releases ` + releases + `. The agent reads VPP's capabilities from its message table, not from its version. It
  reports missing ones; a VLL end that needs them is failed/unsupported.
`

func printHelp(w io.Writer) {
	fmt.Fprint(w, helpHead)
	config.Reference(w)
	fmt.Fprint(w, helpTail)
}

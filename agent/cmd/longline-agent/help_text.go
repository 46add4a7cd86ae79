package main

import (
	"fmt"
	"io"

	"longline.dev/agent/internal/config"
)

const helpHead = `NAME
  longline-agent - brings the VPP of this machine to what the Longline portal intends

SYNOPSIS
  longline-agent [-config FILE] [-check-config]
  longline-agent plan -intent FILE [-json] [-config FILE]
  longline-agent state [-json] [-config FILE]
  longline-agent line ID|NAME [-json] [-config FILE]
  longline-agent trace ID|NAME [-packets N] [-seconds N] [-json] [-config FILE]
  longline-agent claim -vll UUID -end a|z [-interface NAME] [-json] [-config FILE]
  longline-agent release -vll UUID -end a|z [-interface NAME] [-json] [-config FILE]
  longline-agent rebuild -vll UUID -end a|z [-json] [-config FILE]
  longline-agent calibrate [-beside-lines] [-json] [-config FILE]
  longline-agent freeze -reason TEXT -for DURATION [-json] [-config FILE]
  longline-agent unfreeze [-json] [-config FILE]
  longline-agent vppcfg [-with FILE] [-json] [-config FILE]
  longline-agent health [-ready] [-config FILE]
  longline-agent enroll -portal URL -token-file FILE [-ca FILE | -ca-fingerprint SHA256] [-replace] [-config FILE]
  longline-agent -version | -help

DESCRIPTION
  Without a command the agent runs in the foreground until SIGTERM or SIGINT. It takes the whole router's
  intent from the portal over HTTPS, brings VPP to it, reads VPP back, repairs what differs, and reports
  counters, observations and events. It changes and deletes only what it made and tagged itself. Stopping it
  stops no traffic; started again, or after VPP was restarted, it applies the intent it holds by itself.

  plan    shows what applying the intent in FILE would do now, in order: stage, the equivalent line of VPP's
          CLI, and why. Nothing is written.
  state   shows which intent is held and applied, what the agent owns in VPP, what is in conflict, what
          differs from the intent, what is quarantined, and what somebody relabelled. Nothing is written.

  line    shows a line by its id, the beginning of one (8 characters), or its name: what it is here, what passes it now,
          what differs, and what the portal says of it, the last test with frames included. Without the portal ids
          alone are known. Nothing is written.

  trace   shows packets of that line alone as VPP's tracer sees them, both ways: headers, node by node, and no payload.
          The tracer takes whatever comes in, 50 packets by each kind of port every quarter of a second (all threads
          together, each at least 1), and what is another line's is thrown away unseen. On a busy router a quiet line
          may not be among them, and VPP's workers stand still each time for 2 to 5 ms: where a port receives more than
          200,000 frames a second that can cost frames. While the tracer holds somebody else's packets nothing is
          done; one that was armed and has taken none yet cannot be told, and ends with this. The tracer is cleared
          at the end, also after Ctrl-C; if the agent is killed meanwhile, vppctl clear trace removes what stays. A
          frozen router can be looked at too: nothing is configured.

  claim   puts the agent's tag back on what it made for an end of a line and somebody relabelled since: cleared or
          replaced its tag. Until then nothing is done to it, and the end is in conflict with it (relabelled).
          Then the line goes on, or its removal does.
  release lets go of it instead: the agent forgets that it made it. It stays as it is, without the line's policer, and is
          yours; its removal is then answered with removed, and the portal gives its VNI and VLAN to others.
          Both are about all of the end that state lists as relabelled, or about one interface.

  calibrate
          measures what each encapsulation costs this router: the clocks per frame of the nodes of VPP's graph that a
          frame passes from a port into a tunnel. VPP's packet generator sends the frames through a loop that the agent
          makes for it, in a table of its own, and takes away again; no frame leaves the router or reaches a port. It
          takes some seconds, in which nothing is changed for lines and VPP's runtime counters (show runtime) are
          cleared again and again. The portal has to have the router under maintenance, and no line may carry
          frames here, or nothing is done. With -beside-lines it is done all the same: their frames come later, by up
          to a millisecond, some may be lost, and those that pass spoil the figures.
          The NOC can take the figures as this router's profile: give the output with -json to its page in the portal.

  rebuild deletes the sub-interface of one end and creates it again, with all that belongs to it. Its frames are lost for a
          moment. Use it where the portal shows that VPP drops the frames of a line although they have its VLAN, and the
          agent's own attempt did not help or could not be made. The agent itself rebuilds an end only after VPP's tracer
          has shown such frames, and only once.

  freeze  leaves VPP alone for a while, over restarts of the agent and of VPP: it is read and reported, and nothing is
          built, changed, repaired, removed or tested. The portal says so, and what is ordered waits. Afterwards nothing
          is repaired before somebody has looked in the portal at what was changed meanwhile, if anything was.
  unfreeze
          ends the freeze before its time, the portal's too.

  vppcfg  prints as YAML what a file of vppcfg (0.0.7) has to name of what the agent made, so that vppcfg does not remove it;
          with -with FILE the whole of the operator's own FILE and that, for vppcfg reads one file. Comments of FILE stay.
          Where FILE names something otherwise, each such place is told and nothing is printed. What vppcfg cannot name
          (GENEVE; GRE on ports with an MTU below its own) stands in comments and on standard error, with what vppcfg
          does because of it. With vpp.vppcfg: beside in the agent's file a plan over both is empty. Nothing is written.

  health  exits with 0 if the agent lives; with -ready, if it is connected to VPP and its intent is applied.

  All of these ask the agent that runs with the same configuration, over its control socket, which only the
  agent's user and root may use.

  enroll  gets this router its certificate. It makes a private key, which never leaves this machine, and sends
          a certificate request with the one-time token that the NOC made on the router's page (good for 24
          hours). Key, certificate and CA are stored, with mode 0600, where the configuration has them: all
          three or none. Run it as the agent's own user, in a folder that this user may write.
          Cut off at any moment, run it again with the same token: the key is kept until it has its certificate,
          and the portal answers the same token and key with the same certificate. With a valid certificate in
          place nothing is done, unless -replace is given. A running agent uses the new certificate from
          the next connection on; start it anew if the CA is another one.

OPTIONS
  -config FILE    the configuration (default ` + defaultConfig + `)
  -check-config   check the configuration, name every error by its key, and exit
  -intent FILE    an intent document as in the portal's PUT /v1/intent; /dev/stdin reads standard input
  -vll UUID       the line, as state and the portal have it
  -end a|z        its end on this router
  -interface NAME this interface alone
  -json           print the agent's answer as it came (docs/reference/agent-requests.md)
  -packets N      how many packets to show at the most, 1 to 50 (default 10)
  -seconds N      for how long to look at the most, 1 to 30 (default 5)
  -reason TEXT    why, for whoever meets the freeze
  -for DURATION   how long at the most: 45m, 2h30m; up to 720h
  -with FILE      print FILE with what vppcfg has to name in it
  -beside-lines   calibrate although lines carry frames here
  -ready          ask for more than life
  -portal URL     https URL of the portal's web pages
  -token-file FILE
                  file with the enrolment token; /dev/stdin reads standard input
  -ca FILE        PEM file with the CAs that may vouch for the portal's web pages, instead of this machine's
  -ca-fingerprint SHA256
                  trust the certificate with this SHA-256 fingerprint (64 hexadecimal digits, colons
                  allowed), the portal's own or a CA's that it shows, instead of this machine's CAs
  -replace        make a new key and ask for a new certificate although there is a valid one: before it expires,
                  or after it was revoked
  -version        print the version and the VPP releases supported, and exit
  -help           print this text, and exit

CONFIGURATION
  A YAML file; a dot below stands for a section. Relative paths are relative to the file's folder.
  No other keys are accepted.

`

const helpTail = `
FILES
  state_dir/intent.json     the intent held
  state_dir/journal.json    what the agent was about to make; lets it know its own after a crash
  state_dir/tagged.log      what the agent tagged in this run of VPP; lets it know its own after somebody relabelled it
  state_dir/counters/       counter samples that the portal has not taken
  state_dir/events/         events that the portal has not taken
  state_dir/*.set-aside     what could not be read at a start; remove it once it was looked at
  state_dir/freeze.json     the freeze, until somebody has looked at what it left
  state_dir/rebuilds.json   sub-interfaces that were rebuilt, until frames arrive; so a restart does not rebuild them again
  state_dir/reserve         space for intent and journal, used when the disk is full
  state_dir/control.sock    control socket
  state_dir/lock            locked while an agent runs
  tls.key with .new         the key that waits for its certificate, after an enrolment that did not end

SIGNALS
  SIGTERM, SIGINT   stop: accept no new work, finish the running converge (at most 75 s), then close;
                    unsent reports are on disk already

EXAMPLES
  longline-agent -check-config -config agent.yaml
        before the agent is started with a changed configuration
  longline-agent plan -intent intent.json
        what a document would do to this VPP; with the document from state_dir/intent.json: what differs now
  longline-agent state -json | jq '.conflicts'
        what is in the way, and of which line
  longline-agent line Cheese cellar
        how is that line, and what passes it now
  longline-agent trace Cheese cellar -packets 5
        which nodes of VPP's graph its packets pass, and where they end
  longline-agent claim -vll 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01 -end a
        somebody cleared the tags of that line by mistake: let it go on
  longline-agent rebuild -vll 6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01 -end a
        VPP drops the frames of that line as of an unknown VLAN: create its sub-interface again
  longline-agent freeze -reason "new line cards" -for 2h
        before somebody works on this VPP by hand
  longline-agent calibrate -json > profile.json
        what encapsulations cost here, for the router's page in the portal
  longline-agent vppcfg -with /etc/vpp/vppcfg.yaml > /tmp/all.yaml && vppcfg plan -c /tmp/all.yaml
        what vppcfg would change, the lines left out
  longline-agent enroll -portal https://portal.example.net -token-file /dev/stdin
        asks for the first certificate; the token is typed and does not get into the shell's history

EXIT STATUS
  0 done or stopped by a signal; 1 failed; 2 the command line was wrong; 3 vppcfg printed, and could not name all

LOGS
  JSON lines on standard error; only what is wrong with the command line or the configuration is told in words

VPP
  Releases ` + releases + `. What a VPP can do is read from its message table, not from its version: what it
  lacks is reported, and a VLL end that needs it answers failed/unsupported.
`

func printHelp(w io.Writer) {
	fmt.Fprint(w, helpHead)
	config.Reference(w)
	fmt.Fprint(w, helpTail)
}

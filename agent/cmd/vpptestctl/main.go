// Command vpptestctl shows and changes the configuration of a VPP. Tests that simulate faults use it to
// check the agent. It shares only the connection to VPP with the agent.
//
// vpptestctl does not use govpp's connection, which does not always deregister from VPP. If the message table
// lists sockclnt_delete_reply after sockclnt_delete, govpp confuses these messages: it sends the number of
// the reply instead of the number of the request (open in socketclient.Client). VPP then overlooks the end of
// the client if errno is EAGAIN at that time. After sixteen such clients, VPP hangs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"go.fd.io/govpp/binapi/interface_types"

	"longline.dev/agent/internal/vpp"
)

// timeout is the time after which a VPP that does not respond counts as absent.
const timeout = 3 * time.Second

const usage = `vpptestctl SOCKET show                    what is configured, as JSON
vpptestctl SOCKET add-sub PORT VLAN       a sub-interface for frames with this one 802.1Q tag
vpptestctl SOCKET delete-sub NAME         delete a sub-interface
vpptestctl SOCKET add-gre LOCAL REMOTE N  a tunnel for Ethernet over GRE between two addresses, which is called gre<N>
vpptestctl SOCKET delete-tunnel NAME      delete a tunnel
vpptestctl SOCKET untag NAME              take an interface's tag off
vpptestctl SOCKET up|down NAME            set an interface's admin state
vpptestctl SOCKET disconnect NAME         end the cross-connect out of an interface
vpptestctl SOCKET walk-slowly             search for fragments of incomplete packets once a second`

var errUsage = errors.New(usage)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vpptestctl:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	if len(args) < 2 {
		return errUsage
	}
	do, err := command(args[1:], stdout)
	if err != nil {
		return err
	}
	ctx := context.Background()
	session, err := vpp.Dialer{Socket: args[0], Timeout: timeout}.Dial(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	return do(ctx, session)
}

// edits are the commands that change the interface that their only argument names.
var edits = map[string]change{
	"delete-sub": deleteSub, "untag": untag, "disconnect": disconnect,
	"up": setAdmin(interface_types.IF_STATUS_API_FLAG_ADMIN_UP), "down": setAdmin(0),
}

func command(args []string, stdout io.Writer) (do func(context.Context, *vpp.Session) error, err error) {
	switch command, n := args[0], len(args)-1; {
	case n == 0 && command == "show":
		return func(ctx context.Context, session *vpp.Session) error {
			shown, err := show(ctx, session)
			if err != nil {
				return err
			}
			return json.NewEncoder(stdout).Encode(shown)
		}, nil
	case n == 0 && command == "walk-slowly":
		return walkSlowly, nil
	case n == 1 && command == "delete-tunnel":
		return func(ctx context.Context, session *vpp.Session) error { return deleteTunnel(ctx, session, args[1]) }, nil
	case n == 1 && edits[command] != nil:
		return edit(args[1], edits[command]), nil
	case n == 2 && command == "add-sub":
		vlan, err := strconv.ParseUint(args[2], 10, 12)
		return edit(args[1], addSub(uint16(vlan))), err
	case n == 3 && command == "add-gre":
		request, err := addGRE(args[1], args[2], args[3])
		return func(ctx context.Context, session *vpp.Session) error {
			_, err := called(ctx, session, request)
			return err
		}, err
	}
	return nil, errUsage
}

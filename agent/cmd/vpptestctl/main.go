// Command vpptestctl shows what is configured in a VPP and changes it, over the binary API, knowing nothing of the
// agent. Tests of faults check the agent with it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/sirupsen/logrus"
	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/core"
)

const usage = `vpptestctl SOCKET show                    what is configured, as JSON
vpptestctl SOCKET add-sub PORT VLAN       a sub-interface for frames with this one 802.1Q tag
vpptestctl SOCKET delete-sub NAME         delete a sub-interface
vpptestctl SOCKET up|down NAME            set an interface's admin state
vpptestctl SOCKET disconnect NAME         end the cross-connect out of an interface`

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
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	socketclient.SetLogger(silent)
	core.SetLogger(silent)
	client := socketclient.NewVppClient(args[0])
	client.SetClientName("vpptestctl")
	conn, err := core.Connect(client)
	if err != nil {
		return err
	}
	defer conn.Disconnect()
	if args[1] == "show" && len(args) == 2 {
		shown, err := show(conn)
		if err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(shown)
	}
	return edit(conn, args[1], args[2:])
}

func edit(conn api.Connection, what string, args []string) error {
	switch {
	case what == "add-sub" && len(args) == 2:
		vlan, err := strconv.ParseUint(args[1], 10, 12)
		if err != nil {
			return err
		}
		return onInterface(conn, args[0], func(e editor) error { return e.addSub(uint16(vlan)) })
	case what == "delete-sub" && len(args) == 1:
		return onInterface(conn, args[0], editor.deleteSub)
	case (what == "up" || what == "down") && len(args) == 1:
		return onInterface(conn, args[0], func(e editor) error { return e.setAdmin(what == "up") })
	case what == "disconnect" && len(args) == 1:
		return onInterface(conn, args[0], editor.disconnect)
	}
	return errUsage
}

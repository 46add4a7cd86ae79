package realvpp

import (
	"context"
	"fmt"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/core"
)

// CLI runs a command of VPP's debug CLI and returns what it printed.
func (v *VPP) CLI(command string) (string, error) { return v.cli(command, ReplyTimeout) }

// cli waits for each reply of VPP until the timeout.
func (v *VPP) cli(command string, timeout time.Duration) (string, error) {
	client := socketclient.NewVppClient(v.APISocket())
	client.SetConnectTimeout(timeout)
	conn, err := core.Connect(client)
	if err != nil {
		return "", err
	}
	defer conn.Disconnect()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	reply := &vlib.CliInbandReply{}
	if err := conn.Invoke(ctx, &vlib.CliInband{Cmd: command}, reply); err != nil {
		return "", err
	}
	if reply.Retval != 0 {
		return reply.Reply, fmt.Errorf("%s: retval %d: %s", command, reply.Retval, reply.Reply)
	}
	return reply.Reply, nil
}

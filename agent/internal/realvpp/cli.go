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
func (v *VPP) CLI(command string) (string, error) {
	conn, err := core.Connect(socketclient.NewVppClient(v.APISocket()))
	if err != nil {
		return "", err
	}
	defer conn.Disconnect()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
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

func (v *VPP) answers() error {
	_, err := v.CLI("show version")
	return err
}

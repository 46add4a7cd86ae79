// Command vppsim runs a stand-in for VPP on the given sockets, until it receives a signal to stop.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"longline.dev/agent/internal/vppsim"
)

const usage = `vppsim plays a VPP 25.10 on its binary API and stats sockets. It forwards no frames, but for
those of its packet generator, which go from tunnel to tunnel over the underlay.

  vppsim -api-socket PATH -stats-socket PATH [-cli-socket PATH] [-config FILE.json]

The configuration; every member may be left out:

  {
    "version": "25.10-vppsim",            what show_version answers
    "interfaces": [{
      "name": "host-cust1",
      "ip_mtu": 9000,                     bytes
      "admin_up": true, "link_up": true,
      "addresses": ["10.0.0.0/31"],
      "tag": "",
      "sub_interfaces": [{"id": 7, "outer_vlan": 7, "inner_vlan": 0,
                          "dot1ad": false, "exact_match": true, "tag": ""}]
    }],
    "routes": [{"prefix": "10.255.0.2/32", "drop": false}],
    "traffic": {"rate_bps": 20000000, "frame_bytes": 700},
    "without_messages": ["gre_tunnel_add_del_v2", "gre_tunnel_dump_v2"],
    "lcp_pairs": [{"interface": "host-cust1", "host": "cust1"}],
    "underlay": "/run/network",           a folder that the stand-ins of one network share
    "links": {"mtu": 9000,                what its links let through, IP packets of that many bytes
              "fragments_over": 0,        over which IPv4 leaves in fragments; 0 for never
              "down": false}              true: they let nothing through, though routes lead over them
  }

Traffic is counted in each direction of every access interface whose path is whole: cross-
connected both ways, up, with link, its tunnel from an own address to one that has a route.
What the file says of links counts from the next frame on, also while it runs.

Flags:
`

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vppsim:", err)
		os.Exit(1)
	}
}

func run() error {
	apiSocket := flag.String("api-socket", "", "path of the binary API socket")
	statsSocket := flag.String("stats-socket", "", "path of the stats segment socket")
	cliSocket := flag.String("cli-socket", "", "path of the CLI's socket, which knows ping; none if absent")
	configFile := flag.String("config", "", "JSON file, see above")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if *apiSocket == "" || *statsSocket == "" || flag.NArg() > 0 {
		return fmt.Errorf("-api-socket and -stats-socket are needed, and nothing else but -config")
	}
	var config vppsim.Config
	if *configFile != "" {
		loaded, err := vppsim.LoadConfig(*configFile)
		if err != nil {
			return err
		}
		config = loaded
		config.Reload = func() (vppsim.Links, error) {
			now, err := vppsim.LoadConfig(*configFile)
			return now.Links, err
		}
	}
	config.APISocket, config.StatsSocket, config.CLISocket = *apiSocket, *statsSocket, *cliSocket

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	sim, err := vppsim.Start(ctx, config)
	if err != nil {
		return err
	}
	<-ctx.Done()
	sim.Stop()
	return nil
}

package tunnel

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/l2"
)

// l2xcKind is a local cross-connect: both ends are on this router, and no tunnel connects them.
var l2xcKind = &Kind{
	Encapsulation: L2XC,
	Needs:         []api.Message{&l2.SwInterfaceSetL2Xconnect{}, &l2.L2XconnectDump{}},
	key:           allFields,
}

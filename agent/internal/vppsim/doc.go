// Package vppsim is a stand-in for VPP on real Unix sockets, for machines without VPP.
//
// It serves the binary API socket (framing as in VPP's vlibmemory/socket_api.c) and the stats segment
// socket (shared memory with the layout of VPP's vlib/stats). The unmodified agent, or any other govpp
// client, can therefore connect to it as to a VPP 25.10. It keeps the same state as VPP and has the same
// peculiarities: return codes, uniqueness keys, defaults after creation, reuse of interface indices. It
// forwards only frames of packet generators and pings. Access interfaces with a complete path count
// synthetic traffic.
//
// The contract suite in internal/vppcontract runs the same cases on this package and on a real VPP. If the
// results differ, the error is in this package.
package vppsim

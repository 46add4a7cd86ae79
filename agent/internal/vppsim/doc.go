// Package vppsim is a stand-in for VPP on real Unix sockets, for machines without VPP.
//
// It serves the binary API socket (VPP's vlibmemory/socket_api.c framing) and the stats segment socket (the
// shared memory layout of VPP's vlib/stats). An unmodified agent or any govpp client can therefore connect
// to it as to a VPP 25.10. It keeps VPP's state and its quirks: return codes, uniqueness keys, defaults
// after create, reuse of interface indices. It forwards no frames; access interfaces with a complete path
// count synthetic traffic.
//
// The contract suite in internal/vppcontract runs the same cases on this package and on a real VPP. Where
// the two differ, this package is wrong.
package vppsim

// Package vppcontract tests the behaviour of VPP on which the agent relies, at the level of the binary
// API. Each case runs with the same assertions on vppsim and, if one is installed, on a real VPP. The
// package contains only tests.
package vppcontract

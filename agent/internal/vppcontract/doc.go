// Package vppcontract tests the behaviour of VPP that the agent relies on, at the level of the binary API.
// Each case runs on vppsim and, if one is installed, on a real VPP, with the same assertions. The package
// contains only tests.
package vppcontract

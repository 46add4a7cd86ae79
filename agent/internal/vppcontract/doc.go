// Package vppcontract holds what the agent relies on in VPP, as tests at the level of the
// binary API. Each case runs on vppsim and, where one is installed, on a real VPP, with the
// same assertions. It has no code of its own.
package vppcontract

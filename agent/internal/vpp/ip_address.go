package vpp

import (
	"net/netip"

	"go.fd.io/govpp/binapi/ip_types"
)

// NetipAddr converts an address from the type that VPP's messages use.
func NetipAddr(a ip_types.Address) netip.Addr {
	if a.Af == ip_types.ADDRESS_IP6 {
		return netip.AddrFrom16(a.Un.GetIP6())
	}
	return netip.AddrFrom4(a.Un.GetIP4())
}

// IPAddress converts an address to the type that VPP's messages use.
func IPAddress(a netip.Addr) ip_types.Address {
	if a.Is6() {
		return ip_types.Address{Af: ip_types.ADDRESS_IP6, Un: ip_types.AddressUnionIP6(a.As16())}
	}
	return ip_types.Address{Af: ip_types.ADDRESS_IP4, Un: ip_types.AddressUnionIP4(a.As4())}
}

// Package snmp gives the interfaces of VPP to an SNMP agent: ifTable and ifXTable of the IF-MIB (RFC 2863), as a subagent
// (AgentX, RFC 2741) of Net-SNMP's snmpd, which speaks SNMP with whoever asks.
package snmp

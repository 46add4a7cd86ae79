// Package snmp provides VPP's interfaces to an SNMP agent: ifTable and ifXTable of the IF-MIB (RFC 2863).
// It is a subagent (AgentX, RFC 2741) of Net-SNMP's snmpd, which serves SNMP clients.
package snmp

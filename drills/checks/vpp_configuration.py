"""What is configured in a VPP in the words of its own command line, for comparison."""

import re

from devstack.vpp import Vpp

Told = dict[str, list[str]]
_COMMANDS = (
    *("show interface address", "show mode", "show bridge-domain"),
    *("show vxlan tunnel", "show geneve tunnel", "show gre tunnel"),
)
# Numbers that VPP gives by the order in which things were made.
_INDEX = re.compile(r"^\[\d+\] |(?:sw-if-idx|encap-dpo-idx|l2-adj-idx|(?<=bd-id )\d+ idx|fib-idx) \d+")


def configuration(vpp: Vpp) -> Told:
    """What is configured, without what VPP counts: interfaces with index, state and MTUs, addresses, modes,
    bridges, tunnels and tags."""
    told = {each: vpp.show(each).splitlines() for each in _COMMANDS}
    rows = [line for line in vpp.show("show interface").splitlines() if line and not line[0].isspace()]
    # The columns behind the MTUs are counters.
    told["show interface"] = [" ".join(row.split()[:4]) for row in rows]
    names = [row.split()[0] for row in rows[1:]]
    told["tags"] = [f"{name}: {vpp.show(f'show interface {name} tag').strip()}" for name in names]
    return told


def whole_configuration(vpp: Vpp) -> Told:
    """The same and policers, classify tables and BFD sessions, without the numbers that VPP gave: for VPPs
    that were started anew in between."""
    told = configuration(vpp)
    told["show interface"] = [
        " ".join((name, *rest)) for name, _, *rest in map(str.split, told["show interface"])
    ]
    told["show policer"] = re.findall(r'^Name "[^\n]*', vpp.show("show policer"), re.MULTILINE)
    told["show bfd sessions"] = [
        row.strip() for row in vpp.show("show bfd sessions").splitlines() if "Number of" in row
    ]
    told["show classify tables"] = vpp.show("show classify tables").splitlines()
    told["show packet-generator"] = vpp.show("show packet-generator").splitlines()
    return {
        command: sorted(" ".join(_INDEX.sub("", row).split()) for row in rows if row.strip())
        for command, rows in told.items()
    }

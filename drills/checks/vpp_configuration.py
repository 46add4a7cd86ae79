"""A VPP's configuration as its command line prints it, for comparisons."""

import re

from devstack.routers.vpp import Vpp

Configuration = dict[str, list[str]]
_COMMANDS = (
    *("show interface address", "show mode", "show bridge-domain"),
    *("show vxlan tunnel", "show geneve tunnel", "show gre tunnel"),
)
# Numbers that depend on the order in which objects were created.
_INDEX = re.compile(r"^\[\d+\] |(?:sw-if-idx|encap-dpo-idx|l2-adj-idx|(?<=bd-id )\d+ idx|fib-idx) \d+")


def configuration(vpp: Vpp) -> Configuration:
    """Return the configuration without counters: interfaces, bridges, tunnels and tags.

    For each interface it contains index, state, MTUs, addresses and mode.
    """
    shown = {each: vpp.show(each).splitlines() for each in _COMMANDS}
    rows = [line for line in vpp.show("show interface").splitlines() if line and not line[0].isspace()]
    # Keep only the columns up to the MTUs. The remaining columns are counters.
    shown["show interface"] = [" ".join(row.split()[:4]) for row in rows]
    names = [row.split()[0] for row in rows[1:]]
    shown["tags"] = [f"{name}: {vpp.show(f'show interface {name} tag').strip()}" for name in names]
    return shown


def lasting_configuration(vpp: Vpp) -> Configuration:
    """Return the configuration, with policers, classify tables and BFD sessions, but without numbers that VPP
    assigned.

    The result can be compared with the result for the same VPP after a restart.
    """
    shown = configuration(vpp)
    shown["show interface"] = [
        " ".join((name, *rest)) for name, _, *rest in map(str.split, shown["show interface"])
    ]
    shown["show policer"] = re.findall(r'^Name "[^\n]*', vpp.show("show policer"), re.MULTILINE)
    shown["show bfd sessions"] = [
        row.strip() for row in vpp.show("show bfd sessions").splitlines() if "Number of" in row
    ]
    shown["show classify tables"] = vpp.show("show classify tables").splitlines()
    shown["show packet-generator"] = vpp.show("show packet-generator").splitlines()
    return {
        command: sorted(" ".join(_INDEX.sub("", row).split()) for row in rows if row.strip())
        for command, rows in shown.items()
    }

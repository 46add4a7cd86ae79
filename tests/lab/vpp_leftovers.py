"""The objects in a VPP, compared to verify that no object of the agent is left."""

from devstack.routers.vpp import Vpp

TUNNELS = ("show vxlan tunnel", "show geneve tunnel", "show gre tunnel")


def interfaces(vpp: Vpp) -> list[str]:
    """Return all interface names, which begin in the first column of `show interface`."""
    lines = vpp.show("show interface").splitlines()[1:]
    return sorted(line.split()[0] for line in lines if line and not line[0].isspace())


def traces(vpp: Vpp) -> dict[str, object]:
    """Return interfaces, their modes (l3, l2 xconnect ...) and every kind of tunnel."""
    names = interfaces(vpp)
    modes = [line.strip() for line in vpp.show("show mode").splitlines()]
    return {
        "interfaces": names,
        "modes": sorted(mode for mode in modes if any(f" {name} " in f" {mode} " for name in names)),
        "tunnels": [vpp.show(command).strip() for command in TUNNELS],
    }

"""The lines on the routers according to their VPPs, and the parts of lines that have been lost."""

from typing import Any

from drills.checks.vpptestctl import VppConfig

Configs = dict[str, VppConfig]


def lines_of(configs: Configs) -> dict[str, set[str]]:
    """Return, for each router, the ids of the lines whose interfaces carry a tag of the portal."""
    return {router: {_line(each) for each in config.tagged()} for router, config in configs.items()}


def all_lines(configs: Configs) -> set[str]:
    return set().union(*lines_of(configs).values())


def forwarding(configs: Configs, line: str) -> bool:
    """Return whether all interfaces of the line are up and cross-connected in both directions."""
    owned = [(config, each) for config in configs.values() for each in config.tagged(line)]
    return bool(owned) and all(_forwards(config, each) for config, each in owned)


def lost_interfaces(before: Configs, after: Configs, *, except_for: set[str]) -> list[str]:
    """Return sentences about interfaces that forward an end in ``before`` and do not forward the same end in
    ``after``.

    Such an interface was deleted, re-created, set down or connected to another interface. A tag with another
    revision of the same end is not a loss.
    """
    found = []
    for router, config in before.items():
        forth = after[router]
        for each in config.tagged():
            if _line(each) in except_for or not _forwards(config, each):
                continue
            now = forth.interfaces.get(each["index"])
            if now is None or now["name"] != each["name"] or _end(now) != _end(each):
                found.append(f"{router} has lost {each['name']} of {each['tag']}")
            elif not now["admin_up"] or forth.connects.get(each["index"]) != config.connects[each["index"]]:
                found.append(f"{router} no longer forwards through {each['name']} of {each['tag']}")
    return found


def booked_twice(configs: Configs) -> list[str]:
    """Return sentences about VNIs and GRE keys that several lines use, according to the tunnels in VPP."""
    users: dict[tuple[str, str], set[str]] = {}
    for config in configs.values():
        for tunnel in config.shown["tunnels"]:
            interface = config.interfaces[tunnel["index"]]
            key = tunnel["vni"] or tunnel["gre_key"]
            if key and interface["tag"].startswith("longline:"):
                kind = "key" if tunnel["gre_key"] else "VNI"
                users.setdefault((kind, str(key)), set()).add(_line(interface))
    return [
        f"{kind} {key} is used by {', '.join(sorted(of))}" for (kind, key), of in users.items() if len(of) > 1
    ]


def _forwards(config: VppConfig, interface: dict[str, Any]) -> bool:
    """Return whether the interface is up and cross-connected in both directions. VPP stores each direction
    separately.
    """
    to = config.connects.get(interface["index"])
    return bool(interface["admin_up"]) and to is not None and config.connects.get(to) == interface["index"]


def _line(interface: dict[str, Any]) -> str:
    line: str = interface["tag"].split(":")[1]
    return line


def _end(interface: dict[str, Any]) -> list[str]:
    parts: list[str] = interface["tag"].split(":")
    return parts[1:3]

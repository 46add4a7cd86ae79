"""What routers have of lines, by their VPPs' own words, and whether something of it is gone."""

from typing import Any

from drills.checks.vpptestctl import VppConfig

Configs = dict[str, VppConfig]


def lines_of(configs: Configs) -> dict[str, set[str]]:
    """By router: the ids of the lines of which something bears our mark."""
    return {router: {_line(each) for each in config.tagged()} for router, config in configs.items()}


def all_lines(configs: Configs) -> set[str]:
    return set().union(*lines_of(configs).values())


def forwarding(configs: Configs, line: str) -> bool:
    """Whether all that bears the line's mark is up and cross-connected, both ways."""
    owned = [(config, each) for config in configs.values() for each in config.tagged(line)]
    return bool(owned) and all(_forwards(config, each) for config, each in owned)


def gone(before: Configs, after: Configs, *, except_for: set[str]) -> list[str]:
    """What forwarded before and is otherwise: made anew, deleted, shut or cross-connected to something else.

    That a mark tells of another revision of the same end is no loss.
    """
    found = []
    for router, config in before.items():
        there = after[router]
        for each in config.tagged():
            if _line(each) in except_for or not _forwards(config, each):
                continue
            now = there.interfaces.get(each["index"])
            if now is None or now["name"] != each["name"] or _end(now) != _end(each):
                found.append(f"{router} has lost {each['name']} of {each['tag']}")
            elif not now["admin_up"] or there.connects.get(each["index"]) != config.connects[each["index"]]:
                found.append(f"{router} no longer forwards through {each['name']} of {each['tag']}")
    return found


def booked_twice(configs: Configs) -> list[str]:
    """VNIs and keys that two lines have, as VPP shows their tunnels."""
    holders: dict[tuple[str, str], set[str]] = {}
    for config in configs.values():
        for tunnel in config.shown["tunnels"]:
            interface = config.interfaces[tunnel["index"]]
            key = tunnel["vni"] or tunnel["gre_key"]
            if key and interface["tag"].startswith("longline:"):
                kind = "key" if tunnel["gre_key"] else "VNI"
                holders.setdefault((kind, str(key)), set()).add(_line(interface))
    return [
        f"{kind} {key} is had by {', '.join(sorted(of))}"
        for (kind, key), of in holders.items()
        if len(of) > 1
    ]


def _forwards(config: VppConfig, interface: dict[str, Any]) -> bool:
    """VPP cross-connects one way at a time: there and back."""
    to = config.connects.get(interface["index"])
    return bool(interface["admin_up"]) and to is not None and config.connects.get(to) == interface["index"]


def _line(interface: dict[str, Any]) -> str:
    line: str = interface["tag"].split(":")[1]
    return line


def _end(interface: dict[str, Any]) -> list[str]:
    parts: list[str] = interface["tag"].split(":")
    return parts[1:3]

"""Read the descriptions of interfaces from a vppcfg file (git.ipng.ch/ipng/vppcfg)."""

from collections.abc import Iterator
from typing import Any

import yaml

from portal.uploads.errors import TableTooLarge, VppcfgUnreadable

MAX_BYTES = 1024 * 1024
_LONGEST = 100


class _Plain(yaml.BaseLoader):
    """A YAML loader that keeps each scalar as text and refuses aliases. With aliases, a small file can expand
    to millions of nodes.
    """

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="an alias", problem_mark=self.peek_event().start_mark)
        return super().compose_node(parent, index)


def vppcfg_descriptions(data: bytes) -> dict[str, str]:
    """Return the ``description`` of each interface and sub-interface that has one, by its name in VPP.

    Sub-interfaces are named like ``TenGigabitEthernet3/0/0.100``. Raises TableTooLarge, VppcfgUnreadable.
    """
    if len(data) > MAX_BYTES:
        raise TableTooLarge(max_bytes=MAX_BYTES)
    try:
        document = yaml.load(data, Loader=_Plain)  # noqa: S506 - it makes texts, lists and mappings only
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise VppcfgUnreadable(line=mark.line + 1 if mark else 1) from None
    if not isinstance(document, dict) or not isinstance(document.get("interfaces"), dict):
        raise VppcfgUnreadable(line=1)
    return {name: text for name, text in _described(document["interfaces"]) if text}


def _described(interfaces: dict[Any, Any]) -> Iterator[tuple[str, str]]:
    for name, interface in interfaces.items():
        if not isinstance(interface, dict):
            continue
        yield str(name), _text(interface)
        subs = interface.get("sub-interfaces")
        for number, sub in subs.items() if isinstance(subs, dict) else ():
            if isinstance(sub, dict):
                yield f"{name}.{number}", _text(sub)


def _text(interface: dict[Any, Any]) -> str:
    return str(interface.get("description") or "").replace("\0", "")[:_LONGEST]

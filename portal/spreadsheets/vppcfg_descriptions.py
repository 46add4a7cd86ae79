"""What a file of vppcfg calls the interfaces that it names (git.ipng.ch/ipng/vppcfg)."""

from collections.abc import Iterator
from typing import Any

import yaml

from portal.spreadsheets.errors import TableTooLarge, VppcfgUnreadable

MAX_BYTES = 1024 * 1024
_LONGEST = 100


def vppcfg_descriptions(data: bytes) -> dict[str, str]:
    """``description`` by interface, and by sub-interface as VPP calls it: ``TenGigabitEthernet3/0/0.100``.

    Raises TableTooLarge, VppcfgUnreadable.
    """
    if len(data) > MAX_BYTES:
        raise TableTooLarge(max_bytes=MAX_BYTES)
    try:
        told = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise VppcfgUnreadable(line=mark.line + 1 if mark else 1) from None
    if not isinstance(told, dict) or not isinstance(told.get("interfaces"), dict):
        raise VppcfgUnreadable(line=1)
    return {name: text for name, text in _described(told["interfaces"]) if text}


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
    return str(interface.get("description") or "")[:_LONGEST]

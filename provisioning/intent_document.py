"""The intent of one router as one document (docs/reference/agent-api.md).

Pure functions: rows in, dataclasses and JSON out.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from ipaddress import ip_address
from typing import Any
from uuid import UUID

from portal.core.bandwidth_profile import BandwidthProfile
from portal.core.path_bfd import PathWatch


@dataclass(frozen=True, slots=True)
class Release:
    """The release of an end from the portal. The end keeps forwarding with these tags (None: no tag)."""

    access_tag: str | None
    tunnel_tag: str | None


@dataclass(frozen=True, slots=True)
class EndRow:
    """One VLL end on the router, as in the database.

    ``local`` and ``remote`` are tunnel addresses, None for a local cross-connect. ``interface`` is None for a
    probe, which has no access. ``confirmed_removed``: the router has confirmed that it removed this revision
    completely. ``bandwidth``: the profile for the policers, None if the end is not policed.
    """

    vll: UUID
    side: str
    revision: int
    wanted_present: bool
    confirmed_removed: bool
    admin_up: bool
    frame: int
    interface: str | None
    tagging: str
    outer_vlan: int | None
    inner_vlan: int | None
    exact_match: bool
    encapsulation: str
    family: int | None
    local: str | None
    remote: str | None
    vni: int | None
    bandwidth: BandwidthProfile | None = None
    # The tunnel is being tested, and the customer is not connected to it.
    testing: bool = False
    gre_key: int | None = None
    # The FIB table of the tunnel.
    table: int = 0
    # The end takes over foreign objects without changes.
    adopt: bool = False
    # The port is shut down because of the far end's link.
    uni_link_down: bool = False
    # The label of the line for SNMP, None if the agent does not want it.
    label: str | None = None
    # How to release an unwanted end; None to delete it.
    release: Release | None = None


@dataclass(frozen=True, slots=True, order=True)
class EndKey:
    """An end at a revision; ``present`` distinguishes a wanted end from a tombstone."""

    vll: UUID
    side: str
    revision: int
    present: bool
    release: Release | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RouterIntent:
    """The intent of the whole router at one generation.

    ``present`` and ``removed`` are sorted by (vll, side).
    """

    router: str
    generation: int
    present: tuple[EndRow, ...]
    removed: tuple[EndKey, ...]
    # The BFD settings for the tunnels' paths, None if no path is to be watched.
    watch: PathWatch | None = None

    def document(self) -> bytes:
        """Return the intent as the JSON document of the agent API, in canonical form.

        Equal intents give equal text. The document's members are sorted by name, and it has no white space.
        """
        content = {
            "schema": 1,
            "router": self.router,
            "generation": self.generation,
            "present": [_present(row) for row in self.present],
            "removed": [_tombstone(key) for key in self.removed],
            # Agents that do not watch paths do not know this member.
            **({} if self.watch is None else {"watch": self.watch._asdict()}),
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    def handed_over(self, vll: UUID) -> "RouterIntent":
        """Return this intent as it will be after the line has passed its test."""
        present = (replace(row, testing=False) if row.vll == vll else row for row in self.present)
        return replace(self, present=tuple(present))

    def end_keys(self) -> frozenset[EndKey]:
        """Return every end that this document names."""
        return frozenset(map(key_of, self.present)) | frozenset(self.removed)


def intent_for(
    *,
    router: str,
    generation: int,
    rows: Iterable[EndRow],
    moved_away: Iterable[EndKey] = (),
    watch: PathWatch | None = None,
) -> RouterIntent:
    """Return the intent of these rows: wanted ends, and tombstones until their removal is confirmed.

    ``moved_away``: ends that have moved to another router and whose removal here is not confirmed.
    """
    ordered = sorted(rows, key=_place)
    unwanted = [key_of(row) for row in ordered if not row.wanted_present and not row.confirmed_removed]
    return RouterIntent(
        router=router,
        generation=generation,
        present=tuple(row for row in ordered if row.wanted_present),
        removed=tuple(sorted([*unwanted, *moved_away], key=_place)),
        watch=watch,
    )


def key_of(row: EndRow) -> EndKey:
    """Return the end of this row, with its revision."""
    return EndKey(row.vll, row.side, row.revision, row.wanted_present, row.release)


def sha256_of(document: bytes) -> str:
    """Return the hash by which agent and portal compare documents, in lower-case hex."""
    return hashlib.sha256(document).hexdigest()


def content_sha256_of(document: bytes) -> str:
    """Return the hash of a document without its generation, which is its first member."""
    return sha256_of(document.partition(b",")[2])


def _place(end: EndRow | EndKey) -> tuple[str, str]:
    return str(end.vll), end.side


def _identity(row: EndRow | EndKey) -> dict[str, Any]:
    return {"vll": str(row.vll), "end": row.side, "revision": row.revision}


def _tombstone(key: EndKey) -> dict[str, Any]:
    if key.release is None:
        return _identity(key)
    tags = {name: tag for name, tag in asdict(key.release).items() if tag is not None}
    return {**_identity(key), "release": True, **tags}


def _present(row: EndRow) -> dict[str, Any]:
    return {
        **_identity(row),
        "admin_up": row.admin_up,
        "frame": row.frame,
        # Agents that do not support policers do not know this member.
        **({} if row.bandwidth is None else {"bandwidth": asdict(row.bandwidth)}),
        # Agents that do not support activation tests do not know this member.
        **({"testing": True} if row.testing else {}),
        # Agents that do not support adoption do not know this member.
        **({"adopt": True} if row.adopt else {}),
        # Agents that do not support link loss forwarding do not know this member.
        **({"uni_link_down": True} if row.uni_link_down else {}),
        # Only agents that want labels know this member.
        **({} if row.label is None else {"label": row.label}),
        "access": _access(row),
        "transport": {
            "encapsulation": row.encapsulation,
            "family": row.family,
            "local": _canonical(row.local),
            "remote": _canonical(row.remote),
            "vni": row.vni,
            # Agents that do not support GRE keys do not know this member.
            **({} if row.gre_key is None else {"gre_key": row.gre_key}),
            # Agents that do not support FIB tables refuse a document with this member. They therefore
            # create nothing in table 0.
            **({"table": row.table} if row.table else {}),
        },
    }


def _access(row: EndRow) -> dict[str, Any] | None:
    if row.interface is None:
        return None
    return {
        "interface": row.interface,
        "tagging": row.tagging,
        "outer_vlan": row.outer_vlan,
        "inner_vlan": row.inner_vlan,
        "exact_match": row.exact_match,
    }


def _canonical(address: str | None) -> str | None:
    return None if address is None else str(ip_address(address))

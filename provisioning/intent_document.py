"""The intent of one router as one document (docs/reference/agent-api.md).

Pure functions: rows in, dataclasses and JSON out.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from ipaddress import ip_address
from typing import Any
from uuid import UUID

from portal.core.network.bandwidth_profile import BandwidthProfile
from portal.core.network.path_bfd import PathWatch


@dataclass(frozen=True, slots=True)
class Release:
    """The release of an end from the portal. The end keeps forwarding with these tags (None: no tag)."""

    access_tag: str | None
    tunnel_tag: str | None


@dataclass(frozen=True, slots=True)
class IntendedEnd:
    """One VLL end, or one end of a probe, on the router.

    ``confirmed_removed``: the router has confirmed that it removed this revision completely. ``members``: the
    members of the end in the document, apart from its identity; see ``end_members``. ``release``: how to
    release an unwanted end; None to delete it.
    """

    vll: UUID
    side: str
    revision: int
    wanted_present: bool
    confirmed_removed: bool
    members: Mapping[str, Any]
    release: Release | None = None

    @property
    def key(self) -> "EndKey":
        """Return the end, with its revision."""
        return EndKey(self.vll, self.side, self.revision, self.wanted_present, self.release)


def end_members(
    *,
    admin_up: bool,
    frame: int,
    access: Mapping[str, Any] | None,
    transport: Mapping[str, Any],
    gre_key: int | None = None,
    table: int = 0,
    bandwidth: BandwidthProfile | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the members of an end for the document.

    ``access`` is None for a probe, which has no access. ``local`` and ``remote`` of ``transport`` are tunnel
    addresses, None for a local cross-connect. ``table``: the FIB table of the tunnel. ``bandwidth``: the
    profile for the policers, None if the end is not policed. ``more``: members that only newer agents know,
    such as ``testing`` (the tunnel is tested, and the customer is not connected to it) or ``adopt`` (the end
    takes over foreign objects without changes).

    An agent refuses a document with a member that it does not know. So optional members are left out unless
    they have a value.
    """
    addresses = {name: _canonical(transport[name]) for name in ("local", "remote")}
    optional = {"bandwidth": bandwidth and asdict(bandwidth), **more}
    return {
        "admin_up": admin_up,
        "frame": frame,
        "access": access,
        "transport": {**transport, **addresses, **_set(gre_key=gre_key, table=table)},
        **_set(**optional),
    }


def _set(**optional: Any) -> dict[str, Any]:
    return {name: value for name, value in optional.items() if value}


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
    present: tuple[IntendedEnd, ...]
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
            "present": [{**_identity(row), **row.members} for row in self.present],
            "removed": [_tombstone(key) for key in self.removed],
            # Agents that do not watch paths do not know this member.
            **({} if self.watch is None else {"watch": self.watch._asdict()}),
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    def handed_over(self, vll: UUID) -> "RouterIntent":
        """Return this intent as it will be after the line has passed its test."""
        return replace(self, present=tuple(_tested(row) if row.vll == vll else row for row in self.present))

    def end_keys(self) -> frozenset[EndKey]:
        """Return every end that this document names."""
        return frozenset(row.key for row in self.present) | frozenset(self.removed)


def intent_for(
    *,
    router: str,
    generation: int,
    rows: Iterable[IntendedEnd],
    moved_away: Iterable[EndKey] = (),
    watch: PathWatch | None = None,
) -> RouterIntent:
    """Return the intent of these rows: wanted ends, and tombstones until their removal is confirmed.

    ``moved_away``: ends that have moved to another router and whose removal here is not confirmed.
    """
    ordered = sorted(rows, key=_place)
    unwanted = [row.key for row in ordered if not row.wanted_present and not row.confirmed_removed]
    return RouterIntent(
        router=router,
        generation=generation,
        present=tuple(row for row in ordered if row.wanted_present),
        removed=tuple(sorted([*unwanted, *moved_away], key=_place)),
        watch=watch,
    )


def sha256_of(document: bytes) -> str:
    """Return the hash by which agent and portal compare documents, in lower-case hex."""
    return hashlib.sha256(document).hexdigest()


def content_sha256_of(document: bytes) -> str:
    """Return the hash of a document without its generation, which is its first member."""
    return sha256_of(document.partition(b",")[2])


def _tested(row: IntendedEnd) -> IntendedEnd:
    members = {name: value for name, value in row.members.items() if name != "testing"}
    return replace(row, members=members)


def _place(end: IntendedEnd | EndKey) -> tuple[str, str]:
    return str(end.vll), end.side


def _identity(row: IntendedEnd | EndKey) -> dict[str, Any]:
    return {"vll": str(row.vll), "end": row.side, "revision": row.revision}


def _tombstone(key: EndKey) -> dict[str, Any]:
    if key.release is None:
        return _identity(key)
    tags = {name: tag for name, tag in asdict(key.release).items() if tag is not None}
    return {**_identity(key), "release": True, **tags}


def _canonical(address: str | None) -> str | None:
    return None if address is None else str(ip_address(address))

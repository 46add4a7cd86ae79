"""The intent document: every valid shape of the contract, canonical, from rows in any order."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.network.bandwidth_profile import BandwidthProfile
from portal.core.network.path_bfd import PathWatch
from provisioning.intent_document import IntendedEnd, Release, end_members, intent_for

VALID = sorted((Path(__file__).parents[2] / "contract" / "intents" / "valid").glob("*.json"))


# The end of a probe.
def rows_of(document: dict[str, Any]) -> list[IntendedEnd]:
    """Return the rows that make the portal send this document."""
    present = [
        IntendedEnd(
            vll=UUID(end["vll"]),
            side=end["end"],
            revision=end["revision"],
            wanted_present=True,
            confirmed_removed=False,
            members=members_of(end),
        )
        for end in document["present"]
    ]
    return present + [
        tombstone(UUID(end["vll"]), end["end"], end["revision"], release=release_of(end))
        for end in document["removed"]
    ]


# The members that `members_of` passes by name, and those of IntendedEnd itself.
_NAMED = {"vll", "end", "revision", "admin_up", "frame", "access", "transport", "bandwidth"}


def members_of(end: dict[str, Any]) -> dict[str, Any]:
    required = ("encapsulation", "family", "local", "remote", "vni")
    return end_members(
        admin_up=end["admin_up"],
        frame=end["frame"],
        access=end["access"],
        transport={name: end["transport"][name] for name in required},
        gre_key=end["transport"].get("gre_key"),
        table=end["transport"].get("table", 0),
        bandwidth=BandwidthProfile(**end["bandwidth"]) if "bandwidth" in end else None,
        **{name: value for name, value in end.items() if name not in _NAMED},
    )


def release_of(end: dict[str, Any]) -> Release | None:
    return Release(end.get("access_tag"), end.get("tunnel_tag")) if end.get("release") else None


def tombstone(
    vll: UUID, side: str, revision: int, *, confirmed: bool = False, release: Release | None = None
) -> IntendedEnd:
    return IntendedEnd(
        vll=vll,
        side=side,
        revision=revision,
        wanted_present=False,
        confirmed_removed=confirmed,
        members={},
        release=release,
    )


def canonical(document: dict[str, Any]) -> bytes:
    for part in ("present", "removed"):
        document[part].sort(key=lambda end: (end["vll"], end["end"]))
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_rows_become_the_contracts_document(path: Path) -> None:
    document = json.loads(path.read_text())
    intent = intent_for(
        router=document["router"],
        generation=document["generation"],
        rows=rows_of(document),
        watch=PathWatch(**document["watch"]) if "watch" in document else None,
    )
    assert intent.document() == canonical(document)


def test_the_contract_has_documents_to_compare_with() -> None:
    assert len(VALID) >= 12


@given(st.permutations(range(6)))
def test_the_order_of_the_rows_changes_nothing(order: list[int]) -> None:
    rows = [tombstone(UUID(int=number // 2), "az"[number % 2], 1) for number in range(6)]
    shuffled = [rows[index] for index in order]
    assert (
        intent_for(router="rhino", generation=1, rows=shuffled).document()
        == intent_for(router="rhino", generation=1, rows=rows).document()
    )


def test_a_tombstone_stays_until_its_removal_is_confirmed() -> None:
    vll = UUID(int=1)
    waiting = intent_for(router="rhino", generation=1, rows=[tombstone(vll, "a", 2)])
    confirmed = intent_for(router="rhino", generation=1, rows=[tombstone(vll, "a", 2, confirmed=True)])
    assert [row.vll for row in waiting.removed] == [vll]
    assert confirmed.removed == ()


def test_an_ipv6_address_is_written_canonically() -> None:
    document = json.loads((VALID[0].parent / "vxlan6-qinq.json").read_text())
    shown = document["present"][0]["transport"]["local"]
    document["present"][0]["transport"]["local"] = "FD00:0255:0::1"
    [spelled_out] = rows_of(document)
    sent = json.loads(intent_for(router="rhino", generation=42, rows=[spelled_out]).document())
    assert sent["present"][0]["transport"]["local"] == shown

"""The verdict of a storm finds every kind of error: each test provokes one sentence."""

from typing import Any

import pytest

from drills.chaos.verdict import Verdict, difference

BEFORE = {"show mode": ["l3 loop77", "l2 xconnect a b"], "show policer": []}
LINE = "longline:11111111-2222-3333-4444-555555555555:a"
POLICER = f'Name "{LINE}" type 2r3c-2698 cir 5000 eir 0 cb 15000 eb 0'


@pytest.fixture
def verdict() -> Verdict:
    return Verdict("postgres://nobody", "http://nowhere", "token")


def test_differences_of_a_vpp_are_reported() -> None:
    after = {"show mode": ["l3 loop77", "l3 pg0"], "show policer": []}
    assert list(difference(BEFORE, after, where="rhino")) == [
        "rhino: show mode no longer says: l2 xconnect a b",
        "rhino: show mode says for the first time: l3 pg0",
    ]
    assert list(difference(BEFORE, BEFORE, where="rhino")) == []


@pytest.mark.parametrize(
    ("kbps", "shown", "wrong"),
    [
        (5000, [POLICER], []),
        (9000, [POLICER], [f"rhino: policer {LINE} has a CIR of 5000 kbit/s and not of 9000"]),
        (5000, [], [f"rhino: policer {LINE} has a CIR of None kbit/s and not of 5000"]),
        (None, [POLICER], [f"rhino: policer {LINE} belongs to no end"]),
    ],
)
def test_missing_wrong_and_surplus_policers_are_reported(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch, kbps: int | None, shown: list[str], wrong: list[str]
) -> None:
    rows = [] if kbps is None else [("rhino", LINE, True, kbps)]
    monkeypatch.setattr(Verdict, "sql", lambda self, query, *values: rows)
    assert list(verdict.against_policers("rhino", shown)) == wrong


def test_lost_orders_and_unrequested_orders_are_reported(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sql(self: Verdict, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return [("kept", "completed"), ("more", "completed")] if "vll_order" in query else []

    monkeypatch.setattr(Verdict, "sql", sql)
    monkeypatch.setattr(Verdict, "_against_the_api", lambda self, orders: iter(()))
    assert list(verdict.against_promises(["kept", "lost"], unanswered=0)) == [
        "order lost was accepted and does not exist",
        "1 orders exist that no customer sent, 0 had no response",
    ]
    assert list(verdict.against_promises(["kept"], unanswered=1)) == []

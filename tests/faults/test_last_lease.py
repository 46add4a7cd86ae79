"""Of many requests for the last resource one succeeds, and all others are refused immediately."""

from collections import Counter

from drills.checks.checker import Checker
from drills.checks.customer import Customer, Line, accepted

CLIENTS = 64
GIGABIT = 1_000_000_000


def test_the_last_vlan_goes_to_one_of_64_clients(alice: Customer, checker: Checker, line: Line) -> None:
    answers = alice.post_all([line.order(vlan=4094) for _ in range(CLIENTS)], at_once=CLIENTS)
    assert Counter(answer.status for answer in answers) == {202: 1, 409: CLIENTS - 1}
    checker.require_terminal((a.order for a in accepted(answers)), within_s=60)


def test_the_last_vlan_of_all_goes_to_one_of_64_clients_that_take_any(
    alice: Customer, checker: Checker, line: Line
) -> None:
    since, free = "2000-01-01", 2345
    # All VLANs except one are taken on both ports, by rows that the other checks do not know. They are
    # deleted below.
    checker.sql(
        "INSERT INTO allocation_portvlanlease (port_id, holder, side, keys, leased_at) "
        "SELECT p, gen_random_uuid(), 'a', int8range(v << 12, (v << 12) + 4096), %s "
        "FROM unnest(%s::bigint[]) p, generate_series(1, 4094) v WHERE v <> %s "
        "AND NOT EXISTS (SELECT FROM allocation_portvlanlease l WHERE l.port_id = p "
        "AND l.keys && int8range(v << 12, (v << 12) + 4096)) RETURNING 1",
        since, [line.rhino, line.hippo], free,
    )  # fmt: skip
    try:
        bodies = [line.order(vlan="any") for _ in range(CLIENTS)]
        answers = alice.post_all(bodies, at_once=CLIENTS)
    finally:
        checker.sql("DELETE FROM allocation_portvlanlease WHERE leased_at = %s RETURNING 1", since)
    assert Counter(answer.status for answer in answers) == {202: 1, 409: CLIENTS - 1}
    [won] = accepted(answers)
    assert [won.body["vll"][end]["outer_vlan"] for end in ("a_end", "z_end")] == [free, free]
    checker.require_terminal([won.order], within_s=60)


def test_the_last_gigabit_goes_to_one_of_64_clients(alice: Customer, checker: Checker, line: Line) -> None:
    booked = "SELECT DISTINCT booked_bps FROM inventory_port WHERE id IN (%s, %s)"
    [(already,)] = checker.sql(booked, line.rhino, line.hippo)
    first = alice.post(line.order(cir_bps=9 * GIGABIT - already))
    assert first.status == 202
    bodies = [line.order(cir_bps=GIGABIT) for _ in range(CLIENTS)]
    answers = alice.post_all(bodies, at_once=CLIENTS)
    assert Counter(answer.status for answer in answers) == {202: 1, 409: CLIENTS - 1}
    assert checker.sql(booked, line.rhino, line.hippo) == [(10 * GIGABIT,)]
    checker.require_terminal([first.order, *(a.order for a in accepted(answers))], within_s=60)

"""The diagnosis of a line: it names each single fault, and puts the cause before its effects."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from json import dumps, loads
from typing import Any

import pytest
from django.core.serializers.json import DjangoJSONEncoder

from portal.diagnosis.checks import CheckState, Finding, checks_of
from portal.diagnosis.diagnosis import ADVICE, SENTENCES, Verdict, stored_sentence, verdict_of
from portal.diagnosis.line_facts import (
    ActivationTestFacts,
    Counted,
    EndFacts,
    LineFacts,
    PathMtuFacts,
)
from portal.vll.activation_test_procedure import Finding as FramesFinding
from portal.vll.models import Order
from portal.vll.path_status import PathStatus

NOW = datetime(2026, 11, 24, 14, 3, 7, tzinfo=UTC)
SHUT_DOWN = {"link_up": False, "shut_down": True}
COUNTED = Counted(frames_in=1200, dropped=0, since=NOW - timedelta(seconds=10), until=NOW)


def end(router: str, **more: Any) -> EndFacts:
    facts = EndFacts(
        router=router,
        port="host-cust1",
        reported_at=NOW,
        vpp_away=False,
        silent_since=None,
        dead_since=None,
        locked_since=None,
        maintenance_since=None,
        link_up=True,
        shut_down=False,
        reachable=True,
        as_ordered=True,
        status="verified",
        status_at=NOW,
        reason=None,
        drift=[],
        counted=COUNTED,
        by_vlan=True,
        port_drops=0,
        vlan_restored_at=None,
    )
    return replace(facts, **more)


def line(a: dict[str, Any] | None = None, z: dict[str, Any] | None = None, **more: Any) -> LineFacts:
    facts = LineFacts(
        at=NOW,
        lifecycle="active",
        admin_status="admin-up",
        tunnelled=True,
        order=None,
        portal_listens=True,
        ends={"a": end("rhino", **(a or {})), "z": end("hippo", **(z or {}))},
        path=PathStatus("up", "The path has been up since {time}.", NOW),
        path_mtu=PathMtuFacts(1564, 1564, None, NOW, ""),
        last_test=ActivationTestFacts(
            True, "All test frames of up to 1,518 bytes arrived, in both directions.", NOW
        ),
    )
    return replace(facts, **more)


def verdict(facts: LineFacts) -> Verdict:
    return verdict_of(facts, checks_of(facts))


# The finding of other lines with larger packets on the same path.
BLACK_HOLE = PathMtuFacts(1564, 1564, FramesFinding.LARGE_FRAMES_LOST, NOW, "")
SILENT = {"silent_since": NOW - timedelta(minutes=1), "counted": None}
NO_FRAMES_IN = {"counted": replace(COUNTED, frames_in=0)}
JUST_CHANGED = {"counted": replace(COUNTED, frames_in=0, settled=False)}
DEAD = {**SILENT, "dead_since": NOW, "maintenance_since": NOW}
FULL = {"counted": replace(COUNTED, dropped=7)}


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (line(), "in-order"),
        (line(a={"link_up": False}), "a-port-down"),
        (line(z={"link_up": False}), "z-port-down"),
        (line(a=NO_FRAMES_IN), "a-no-frames-in"),
        (line(z=NO_FRAMES_IN), "z-no-frames-in"),
        (line(a={**NO_FRAMES_IN, "port_drops": 9}), "a-other-frames-in"),
        (line(a=JUST_CHANGED), "in-order"),
        (line(a={**JUST_CHANGED, "port_drops": 9}), "in-order"),
        (line(a={**NO_FRAMES_IN, "port_drops": 9, "by_vlan": False}), "a-no-frames-in"),
        (line(a={"port_drops": 9}), "in-order"),
        (line(a={"vlan_restored_at": NOW}), "a-vlan-was-taken"),
        (line(a={**NO_FRAMES_IN, "port_drops": 9, "vlan_restored_at": NOW}), "a-vlan-was-taken"),
        (line(a={"vlan_restored_at": NOW}, z={"link_up": False}), "z-port-down"),
        (line(a=SHUT_DOWN, z={"link_up": False}), "z-port-down"),
        (line(a=SHUT_DOWN), "a-link-held-down"),
        (line(a=DEAD), "a-router-dead"),
        (line(z={**NO_FRAMES_IN, "port_drops": None}), "z-no-frames-in"),
        (line(a=FULL), "a-policed"),
        (line(z={"reachable": False}), "path-down"),
        (line(path=PathStatus("down", "The path has been down since {time}.", NOW)), "path-down"),
        (line(path=PathStatus("not_watched", "hippo cannot watch paths.")), "in-order"),
        (line(path_mtu=replace(BLACK_HOLE, verified=1500)), "large-frames-lost"),
        (line(path_mtu=BLACK_HOLE), "in-order"),
        (line(path_mtu=replace(BLACK_HOLE, finding=FramesFinding.NOTHING_ARRIVES)), "path-loses"),
        (line(path_mtu=None), "in-order"),
        (line(a={"vpp_away": True}), "a-vpp-down"),
        (line(z=SILENT), "z-router-silent"),
        (line(a={"as_ordered": False, "status": "conflict"}), "a-not-as-wanted"),
        (line(z={"maintenance_since": NOW}), "z-maintenance"),
        (line(a={"locked_since": NOW}), "a-maintenance"),
        (line(portal_listens=False, a=SILENT, z=SILENT), "portal-away"),
        (line(admin_status="admin-down", lifecycle="suspended"), "suspended"),
        (line(lifecycle="terminated"), "not-in-service"),
        (line(lifecycle="pendingTerminate", admin_status="admin-down"), "suspended"),
        (line(order=Order(action="modify", state="inProgress", state_at=NOW)), "order-under-way"),
        (line(order=Order(action="test", state="inProgress", state_at=NOW)), "being-tested"),
        (line(order=Order(action="modify", state="held", state_at=NOW)), "in-order"),
        (
            line(lifecycle="pendingActive", order=Order(action="add", state="held", state_at=NOW)),
            "awaits-approval",
        ),
        (
            line(
                last_test=ActivationTestFacts(
                    False, "Test frames are lost along the way, even small ones.", NOW
                )
            ),
            "test-failed",
        ),
        (line(last_test=None), "in-order"),
        (line(a={"link_up": None}), "not-known"),
        (line(z={"reported_at": None, "link_up": None, "as_ordered": None}), "not-known"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_single_fault_is_named(facts: LineFacts, code: str) -> None:
    found = verdict(facts)
    assert found.code == code
    assert found.sentence
    assert found.advice
    assert "{" not in found.sentence


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (line(a={"link_up": False, **NO_FRAMES_IN}), "a-port-down"),
        (line(a=NO_FRAMES_IN, z={"link_up": False}), "z-port-down"),
        (line(a={"vpp_away": True, "reachable": False, "link_up": None, "as_ordered": None}), "a-vpp-down"),
        (line(a=NO_FRAMES_IN, z=NO_FRAMES_IN, admin_status="admin-down", lifecycle="suspended"), "suspended"),
        (line(a={"maintenance_since": NOW, "link_up": False}), "a-maintenance"),
        (line(a=NO_FRAMES_IN, z={"locked_since": NOW, **SILENT}), "z-maintenance"),
        (line(a={"maintenance_since": NOW, "link_up": None}), "a-maintenance"),
        (line(a={"maintenance_since": NOW, **FULL}), "a-policed"),
        (line(a={"maintenance_since": NOW}, z={"link_up": False}), "z-port-down"),
        (line(a=NO_FRAMES_IN, z={"reachable": False}), "path-down"),
        (line(z={**SHUT_DOWN, **NO_FRAMES_IN}), "z-link-held-down"),
        (line(a=NO_FRAMES_IN, z={**SHUT_DOWN, **NO_FRAMES_IN}), "z-link-held-down"),
        (line(a={"link_up": False, **NO_FRAMES_IN}, z={**SHUT_DOWN, **NO_FRAMES_IN}), "a-port-down"),
        (line(a={**DEAD, "reachable": False}, z={**SHUT_DOWN, **NO_FRAMES_IN}), "a-router-dead"),
        (line(z={**SHUT_DOWN, **NO_FRAMES_IN, "maintenance_since": NOW}), "z-link-held-down"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_cause_comes_before_its_effects(facts: LineFacts, code: str) -> None:
    assert verdict(facts).code == code


def test_the_advice_for_a_line_with_an_ordered_removal_is_to_undo_the_removal() -> None:
    result = verdict(line(lifecycle="pendingTerminate", admin_status="admin-down"))
    assert result.sentence == "The removal of this line is ordered, so it carries nothing."
    assert result.advice == "Undo the removal, and it carries traffic again."


def test_a_stored_verdict_names_the_removal_also_during_maintenance() -> None:
    facts = line(lifecycle="pendingTerminate", admin_status="admin-down", a={"maintenance_since": NOW})
    found = verdict(facts)
    assert found.code == "suspended"
    assert found.sentence.startswith("The removal of this line is ordered, so it carries nothing.")
    kept = {"code": found.code, "sentence": "as it was written then"}
    assert stored_sentence(kept, loads(dumps(found.facts, cls=DjangoJSONEncoder))) == found.sentence


@pytest.mark.parametrize("more", [{}, FULL], ids=["a line that works", "a line with a fault of its own"])
def test_work_that_explains_nothing_comes_after_the_verdict(more: dict[str, Any]) -> None:
    without, during = verdict(line(a=more)), verdict(line(a={"maintenance_since": NOW, **more}))
    assert during.sentence == f"{without.sentence} The NOC is working on rhino, at the A end."
    assert (during.code, during.advice) == (without.code if more else "a-maintenance", without.advice)
    kept = loads(dumps({"code": during.code, "sentence": during.sentence}))
    assert stored_sentence(kept, loads(dumps(during.facts, cls=DjangoJSONEncoder))) == during.sentence


def test_a_line_without_reports_is_not_in_order() -> None:
    facts = line(a={"link_up": True, "as_ordered": True, **SILENT})
    states = {check.code: check.state for check in checks_of(facts)}
    assert states["a_router"] == CheckState.BROKEN
    assert {states[code] for code in ("a_port_link", "a_configuration", "a_frames_in", "a_policer")} == {
        CheckState.UNKNOWN
    }
    assert states["path"] == CheckState.UNKNOWN
    assert states["z_port_link"] == CheckState.OK


def test_a_line_on_one_router_has_no_path_and_no_test() -> None:
    codes = [check.code for check in checks_of(line(tunnelled=False, path=None, last_test=None))]
    assert not {"path", "path_mtu", "last_test"} & set(codes)
    assert verdict(line(tunnelled=False, path=None, last_test=None)).code == "in-order"


def evidence(facts: LineFacts, code: str) -> str:
    [shown] = [check.evidence for check in checks_of(facts) if check.code == code]
    return shown


def test_a_port_that_is_shut_down_has_its_reason_and_takes_no_frames() -> None:
    lost = line(a={"link_up": False}, z={**SHUT_DOWN, **NO_FRAMES_IN})
    assert evidence(lost, "z_port_link") == (
        "Port host-cust1 of hippo is shut down, because the other end has lost its link."
    )
    assert evidence(lost, "z_frames_in") == "No frames can arrive while port host-cust1 is shut down."
    assert evidence(line(a=DEAD, z=SHUT_DOWN), "z_port_link") == (
        "Port host-cust1 of hippo is shut down, because the router at the other end is out of service."
    )


def test_a_dead_router_is_out_of_service_and_not_in_maintenance() -> None:
    result = verdict(line(a=DEAD, z=SHUT_DOWN))
    assert result.sentence == "rhino, at the A end, is out of service."
    assert result.advice == "There is nothing for you to do; the NOC took it out of service."


def test_every_finding_has_a_sentence() -> None:
    findings = set(Finding) - {Finding.NONE}
    assert findings == set(SENTENCES) == set(ADVICE)


def test_customers_see_everything_except_the_detail() -> None:
    facts = line(a={"as_ordered": False, "status": "conflict", "reason": {"code": "vlan_taken"}})
    [check] = [check for check in checks_of(facts) if check.state == CheckState.BROKEN]
    assert "vlan_taken" in check.detail
    assert "vlan_taken" not in check.evidence

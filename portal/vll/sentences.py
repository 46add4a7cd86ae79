"""Sentences about lines for readers: failures of routers, outcomes of activation tests, MTU black holes,
reasons to wait, and reasons why an end is not policed.

They are stored as codes and facts, and composed in the language of each reader.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.core.network.bandwidth_profile import Policing
from portal.core.network.vlan_tags import Tagging
from portal.core.reader_texts import grouped_text, moment_text
from portal.inventory.models import ObservedRouter, Port, Router
from portal.inventory.queries import interfaces_not_reported
from portal.vll.activation_test_procedure import SIZES
from portal.vll.models import ActivationTest, TunnelPath, VllEnd

# Why a router does not have an end as ordered, for readers who do not know routers. The agent defines the
# codes (docs/reference/agent-api.md). The agent's own text quotes VPP and is for the NOC.
ROUTER_REASONS = {
    "unknown_interface": _("{router} does not have this port yet ({object})."),
    "local_address_missing": _("{router} does not have its address in the network yet ({object})."),
    "port_down": _("The port is switched off on {router} ({object})."),
    "vpp_unavailable": _("{router} is not ready at the moment."),
    "other_agent": _("{router} is being configured by another program at the moment."),
    "stats_segment_full": _("{router} has no room for another line."),
    "contested": _("Something else on {router} keeps changing this line ({object})."),
    "verify_mismatch": _("{router} does not have this line as it was ordered yet ({object})."),
    "foreign_subinterface": _("Something else on {router} already uses this VLAN ({object})."),
    "foreign_tunnel": _(
        "Something else on {router} already uses what this line needs in the network ({object})."
    ),
    "foreign_xconnect": _("Something else on {router} is already connected here ({object})."),
    "port_in_use": _("Something else on {router} already uses this port ({object})."),
    "relabelled": _("Somebody has taken this line over by hand on {router} ({object})."),
    "adoption_differs": _(
        "The configuration on {router} differs from the line that was to be taken over ({object})."
    ),
    "adoption_refused": _("{router} does not allow lines of others to be taken over ({object})."),
    "vpp_refused": _("{router} could not make this change ({object})."),
    "unsupported": _("The software of {router} cannot do what this line needs."),
}


def router_reason_sentence(reason: Mapping[str, Any] | None, *, router: str) -> str:
    """Return the sentence for the ``reason`` of an agent's answer or of a failed order.

    Return the agent's own text for an unknown code, and "" without a reason.
    """
    if not reason:
        return ""
    code, named = str(reason.get("code") or ""), str(reason.get("object") or "")
    if code not in ROUTER_REASONS:
        return str(reason.get("message") or code)
    sentence = str(ROUTER_REASONS[code])
    sentence = sentence if named else sentence.replace(" ({object})", "")
    return sentence.format(router=router, object=named)


_REASONS: dict[str, Any] = {
    ActivationTest.Reason.NOTHING_ARRIVES: _(
        "No test frames reach the other end: the underlay does not carry this tunnel."
    ),
    ActivationTest.Reason.LARGE_FRAMES_LOST: _(
        "Frames of {small} bytes pass, those of {frame} do not; the largest that passed had {passed}:"
        " a link on this path carries less than its MTU allows ({links})."
    ),
    ActivationTest.Reason.FRAMES_LOST: _("Test frames are lost along the way, even small ones."),
    ActivationTest.Reason.NO_TUNNEL: _("Both ends are on one router, and there is no tunnel."),
    ActivationTest.Reason.ROUTER_CANNOT: _("{routers} cannot send test frames."),
    ActivationTest.Reason.CALLED_OFF: _("It was cancelled."),
    ActivationTest.Reason.TOOK_TOO_LONG: _(
        "The test could not be carried out within a minute, so the line was joined again without it."
    ),
    ActivationTest.Reason.NOT_BEGUN: _("It could not start on time. {refusal}"),
}


def activation_test_sentence(test: ActivationTest) -> str:
    """Return the sentence for a reader; frames in bytes, without FCS."""
    if test.state == ActivationTest.State.WAITING:
        return str(_("Being tested"))
    if test.state == ActivationTest.State.SCHEDULED:
        assert test.scheduled_for is not None  # noqa: S101 - a scheduled test has a time
        return _("To be tested at {at}").format(at=moment_text(test.scheduled_for))
    if not test.reason:
        return _passed_sentence(test.frame)
    return _reason_sentence(test.reason, activation_test_facts(test))


def activation_test_facts(test: ActivationTest) -> dict[str, Any]:
    """Return the facts for the sentence, as JSON values that events and failed orders store."""
    sizes = {"frame": test.frame, "largest_passed": test.largest_passed}
    if not test.reason:
        return sizes
    links = test.conditions.get("path", {}).get("links", ())
    return sizes | {
        "links": [each["link"] for each in links if not each["backup"]],
        "routers": list(test.routers),
        "refusal": test.conditions.get("refusal", ""),
    }


def failure_sentence(failure: Mapping[str, Any] | None) -> str:
    """Return why an order failed, for a reader. A reason that a NOC user entered is quoted unchanged."""
    if not failure:
        return ""
    of_test, _dash, reason = str(failure.get("code", "")).partition("line-test-")
    if of_test == "" and reason in ActivationTest.Reason.values and "links" in failure:
        return _reason_sentence(reason, failure)
    if failure.get("router"):
        return router_reason_sentence(failure, router=failure["router"])
    return str(failure.get("message") or "")


def announced_sentence(kind: str, data: Mapping[str, Any]) -> str:
    """Return the sentence that a reader sees next to the kind of an event; "" if there is none."""
    if kind == f"line_test.{ActivationTest.State.PASSED}":
        return _passed_sentence(data["frame"])
    if data.get("code") in ActivationTest.Reason.values and "links" in data:
        return _reason_sentence(data["code"], data)
    return str(data.get("reason") or "")


def _passed_sentence(frame: int) -> str:
    return _("All test frames of up to {frame} bytes arrived, in both directions.").format(
        frame=_bytes(frame)
    )


def _reason_sentence(reason: str, facts: Mapping[str, Any]) -> str:
    if reason not in _REASONS:
        return _(
            "The test ended for a reason that this release of the portal does not know: {reason}."
        ).format(reason=reason)
    return str(_REASONS[reason]).format(
        frame=_bytes(facts["frame"]),
        small=_bytes(_largest_standard_size(facts["largest_passed"])),
        passed=_bytes(facts["largest_passed"]),
        links=", ".join(facts["links"]) or _("none is known"),
        routers=", ".join(facts["routers"]),
        refusal=facts["refusal"],
    )


def _largest_standard_size(largest_passed: int | None) -> int | None:
    """Return the largest size that passed among the sizes with which every line is tested."""
    passed = [size for size in SIZES if size <= (largest_passed or 0)]
    return max(passed, default=largest_passed)


def _bytes(size: int | None) -> str:
    return "" if size is None else grouped_text(size)


def black_hole_sentence(path: TunnelPath) -> str:
    """Return ``MTU black hole between rhino and hippo over IPv4: …``."""
    return black_hole_text(black_hole_facts(path))


def black_hole_facts(path: TunnelPath) -> dict[str, Any]:
    """Return the facts of the sentence as JSON: IP packets in bytes."""
    return {
        "a": path.a_router.name,
        "z": path.z_router.name,
        "family": path.family,
        "needed": path.needed_ip_mtu,
        "proven": path.verified_ip_mtu or 0,
    }


def black_hole_text(facts: Mapping[str, Any]) -> str:
    """Return the sentence for stored facts."""
    return _(
        "MTU black hole between {a} and {z} over IPv{family}: packets of {needed} bytes are lost, and the"
        " largest that passes has {proven}."
    ).format(**{**facts, "needed": grouped_text(facts["needed"]), "proven": grouped_text(facts["proven"])})


# The NOC's work on a router: the column with its beginning, the code, and the sentence for customers.
_NOTICES = (
    (
        "locked_since",
        "router-held",
        _(
            "The NOC has been working on {router} since {since} and sends it "
            "nothing meanwhile. Orders continue automatically afterwards."
        ),
    ),
    (
        "frozen_since",
        "router-frozen",
        _(
            "{router} has been frozen since {since}: nothing is changed on it meanwhile."
            " Orders continue automatically afterwards."
        ),
    ),
    (
        "maintenance_since",
        "router-in-maintenance",
        _(
            "{router} has been under maintenance since {since}, so this may take "
            "longer. Orders continue automatically."
        ),
    ),
)


def maintenance_notice(router: Router) -> dict[str, str] | None:
    """Return ``{"code", "message"}`` for the customer, or None if the NOC is not working on the router."""
    for column, code, text in _NOTICES:
        if (since := getattr(router, column)) is not None:
            return {"code": code, "message": text.format(router=router.name, since=moment_text(since))}
    return None


@dataclass(frozen=True, slots=True)
class Wait:
    """A reason why an order would wait. ``code`` is for programs, ``message`` for people."""

    code: str
    message: str


def waits_of(ports: Collection[Port]) -> list[Wait]:
    """Return why a line to these ports would not be built immediately.

    Read the ports with ``select_related("router")``.
    """
    routers = {port.router_id: port.router for port in ports}
    away = [each for each in routers.values() if each.locked_since or each.frozen_since]
    waits = [Wait(**notice) for router in away if (notice := maintenance_notice(router))]
    text = _("{router} reports no interface {interface}. A line there would wait until it has one.")
    for port in interfaces_not_reported(ports):
        message = text.format(router=port.router.name, interface=port.interface)
        waits.append(Wait("interface-not-reported", message))
    return waits


_PLACES = frozenset(each.value for each in Policing)


class Unpoliced(StrEnum):
    """The reasons why no router enforces an end's bandwidth profile. The CIR is booked even then."""

    ROUTER_SILENT = "router_silent"
    NO_POLICERS = "no_policers"
    WHOLE_PORTS_ONLY = "whole_ports_only"
    NOT_CONFIRMED = "not_confirmed"


_TEXTS = {
    Unpoliced.ROUTER_SILENT: _("{router} has not reported yet what it can police."),
    Unpoliced.NO_POLICERS: _("{router} cannot police: its VPP does not support it."),
    Unpoliced.WHOLE_PORTS_ONLY: _(
        "{router} can only police whole ports: its VPP, {version}, or its agent cannot police VLANs."
    ),
    Unpoliced.NOT_CONFIRMED: _(
        "{router} can police ends like this one, but does not confirm that it polices this one."
    ),
}


def unpoliced(end: VllEnd) -> Unpoliced | None:
    """Return why the end is not policed; None for a policed end. Prefetch ``port.router.observed``."""
    if end.policed:
        return None
    seen = _observed(end)
    if seen is None:
        return Unpoliced.ROUTER_SILENT
    if seen.policing not in _PLACES:
        # A newer release stored this value for a kind of policing that this release does not know.
        return Unpoliced.NOT_CONFIRMED
    if Policing(seen.policing).covers(Tagging(end.tagging)):
        return Unpoliced.NOT_CONFIRMED
    return Unpoliced.WHOLE_PORTS_ONLY if seen.policing == Policing.PORT else Unpoliced.NO_POLICERS


def unpoliced_text(end: VllEnd, why: Unpoliced) -> str:
    """Return the reason as a sentence for a reader."""
    seen = _observed(end)
    return _TEXTS[why].format(router=end.port.router.name, version=seen.vpp_version if seen else "")


def _observed(end: VllEnd) -> ObservedRouter | None:
    return getattr(end.port.router, "observed", None)

"""Sentences for the outcome of an activation test."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.reader_zone import moment_text
from portal.core.units import grouped_text
from portal.vll.activation_test_procedure import SIZES
from portal.vll.end_failure_messages import router_reason_sentence
from portal.vll.models import ActivationTest

_REASONS: dict[str, str] = {
    ActivationTest.Reason.NOTHING_ARRIVES: gettext_noop(
        "No test frames reach the other end: the underlay does not carry this tunnel."
    ),
    ActivationTest.Reason.LARGE_FRAMES_LOST: gettext_noop(
        "Frames of {small} bytes pass, those of {frame} do not; the largest that passed had {passed}:"
        " a link on this path carries less than its MTU allows ({links})."
    ),
    ActivationTest.Reason.FRAMES_LOST: gettext_noop("Test frames are lost along the way, even small ones."),
    ActivationTest.Reason.NO_TUNNEL: gettext_noop("Both ends are on one router, and there is no tunnel."),
    ActivationTest.Reason.ROUTER_CANNOT: gettext_noop("{routers} cannot send test frames."),
    ActivationTest.Reason.CALLED_OFF: gettext_noop("It was cancelled."),
    ActivationTest.Reason.TOOK_TOO_LONG: gettext_noop(
        "The test could not be carried out within a minute, so the line was joined again without it."
    ),
    ActivationTest.Reason.NOT_BEGUN: gettext_noop("It could not start on time. {refusal}"),
}


def activation_test_sentence(test: ActivationTest) -> str:
    """Return the sentence for a reader; frames in bytes, without FCS."""
    if test.state == ActivationTest.State.WAITING:
        return _("Being tested")
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
    return _(_REASONS[reason]).format(
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

"""The diagnosis of a line: the verdict from the checks, for a customer and for the NOC."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.core.reader_texts import time_text
from portal.diagnosis.checks import Check, CheckState, Finding, checks_of
from portal.diagnosis.line_facts import LineFacts, facts_of
from portal.vll.models import Vll
from portal.vll.states import Lifecycle

IN_ORDER, NOT_KNOWN = "in-order", "not-known"
_UNBROKEN = {
    IN_ORDER: _("As far as the portal can see, everything about this line is in order."),
    NOT_KNOWN: _("At the moment, only part of this line is reported. That part has no fault."),
}
# The key in ``facts`` for maintenance of routers that the sentence mentions after the verdict.
_WORKS = "works"
_FINDINGS = frozenset(each.value for each in Finding)
_SIDES = {"a": _("the A end"), "z": _("the Z end")}
SENTENCES = {
    Finding.NOT_IN_SERVICE: _("This line is not in service."),
    Finding.AWAITS_APPROVAL: _("This line is waiting for the NOC's approval."),
    Finding.SUSPENDED: _("This line is suspended, so it carries nothing."),
    Finding.BEING_TESTED: _("This line is being tested, which interrupts it for a few seconds."),
    Finding.ORDER_UNDER_WAY: _("An order for this line is under way."),
    Finding.PORTAL_AWAY: _(
        "The portal gets no reports from its routers, so it does not know the state of the line. The"
        " line may still be up."
    ),
    Finding.MAINTENANCE: _("The NOC is working on {router}, at {end}; the line may still carry traffic."),
    Finding.ROUTER_SILENT: _("{router}, at {end}, is not reporting; the line may still be up."),
    Finding.ROUTER_DEAD: _("{router}, at {end}, is out of service."),
    Finding.VPP_DOWN: _("{router}, at {end}, is not forwarding anything."),
    Finding.PORT_DOWN: _("The port {port} at {end} has no link."),
    Finding.LINK_SHUT_DOWN: _(
        "The link at {end} has been taken down to signal to your equipment there that the line is "
        "interrupted."
    ),
    Finding.PORT_SLOW: _(
        "The port {port} at {end} runs slower than agreed, and its lines have booked more than it carries."
    ),
    Finding.NOT_AS_WANTED: _("{router}, at {end}, is not configured as ordered."),
    Finding.PATH_DOWN: _("The network's path between the two ends is down."),
    Finding.LARGE_FRAMES_LOST: _("The network loses this line's large frames; smaller ones get through."),
    Finding.NOT_CARRIED: _(
        "The network no longer carries this line's largest frames everywhere; smaller ones get through."
    ),
    Finding.PATH_LOSES: _("The network loses frames between the two ends."),
    Finding.POLICED: _(
        "More traffic arrives at {end} than the ordered bandwidth allows, and the excess is dropped."
    ),
    Finding.VLAN_WAS_TAKEN: _(
        "Somebody else on {router} tried to use this line's VLAN at {end}, which blocked your frames"
        " there. It was repaired at {at}."
    ),
    Finding.NO_FRAMES_IN: _("Nothing is arriving from you at {end}, and nothing is wrong with the line."),
    Finding.OTHER_FRAMES_IN: _("Frames arrive at {end}, but none of them with this line's VLAN."),
    Finding.TEST_FAILED: _("The last test of this line lost frames."),
}
_NOC_IS_AT_IT = _("The NOC can see this too. If it lasts, report to the NOC what you see.")
ADVICE = {
    Finding.NOT_IN_SERVICE: _("Look at its latest order."),
    Finding.AWAITS_APPROVAL: _("There is nothing for you to do; you are notified of the NOC's decision."),
    Finding.SUSPENDED: _("Resume it, and it carries traffic again."),
    Finding.BEING_TESTED: _("Wait until the test has finished, or cancel its order."),
    Finding.ORDER_UNDER_WAY: _("Wait until it has finished; its progress is on the line's page."),
    Finding.PORTAL_AWAY: _("Check again in a minute. The NOC has been notified."),
    Finding.MAINTENANCE: _("Wait until the work is over."),
    Finding.ROUTER_SILENT: _NOC_IS_AT_IT,
    Finding.ROUTER_DEAD: _("There is nothing for you to do; the NOC took it out of service."),
    Finding.VPP_DOWN: _NOC_IS_AT_IT,
    Finding.PORT_DOWN: _("Check the cable and your own device there: is its port up?"),
    Finding.LINK_SHUT_DOWN: _(
        "There is nothing for you to do there: it is set up again once the other end has had its link for a "
        "while."
    ),
    Finding.PORT_SLOW: _(
        "Check the cables and your own device there: a bond may have lost a member, or a link negotiated "
        "less."
    ),
    Finding.NOT_AS_WANTED: _("It is repaired automatically where possible; otherwise the NOC is notified."),
    Finding.PATH_DOWN: _NOC_IS_AT_IT,
    Finding.LARGE_FRAMES_LOST: _(
        "The NOC can see this too. Until it is fixed, smaller packets get through: lower the MTU on your "
        "own devices."
    ),
    Finding.NOT_CARRIED: _(
        "The NOC knows. If large packets do not arrive, lower the MTU on your own devices."
    ),
    Finding.PATH_LOSES: _NOC_IS_AT_IT,
    Finding.POLICED: _("Send less, or order more bandwidth."),
    Finding.VLAN_WAS_TAKEN: _(
        "There is nothing for you to do. If it happens again, contact the NOC: the cause is not on your side."
    ),
    Finding.NO_FRAMES_IN: _("Check your own device there: is it sending, and with the line's VLAN?"),
    Finding.OTHER_FRAMES_IN: _(
        "Check which VLAN your own device there uses. If it is the line's, contact the NOC."
    ),
    Finding.TEST_FAILED: _("Contact the NOC, or test the line again."),
}
# The sentence and the advice for a suspended line whose removal is ordered.
_REMOVING = _("The removal of this line is ordered, so it carries nothing.")
_UNDO_REMOVAL = _("Undo the removal, and it carries traffic again.")
# These findings come after all others, in this order. A slow port still carries frames, so other faults are
# more important, as in the health of a line. A port is shut down because of another fault. Frames are missing
# if another fault leaves the port without a link.
_COME_LAST = {Finding.PORT_SLOW: 1, Finding.LINK_SHUT_DOWN: 2, Finding.NO_FRAMES_IN: 3}
# Maintenance of a router may cause these findings there.
_EXPLAINED_BY_WORK = {
    Finding.ROUTER_SILENT,
    Finding.VPP_DOWN,
    Finding.PORT_DOWN,
    Finding.NOT_AS_WANTED,
    Finding.PATH_DOWN,
    Finding.LARGE_FRAMES_LOST,
    Finding.NOT_CARRIED,
    Finding.PATH_LOSES,
    Finding.NO_FRAMES_IN,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a line.

    ``code``: ``in-order``, ``not-known``, or a finding. A finding at one end begins with the side, such as
    ``a-port-down``. ``facts``: the facts in the sentence, so that the sentence can be written in another
    language.
    """

    code: str
    sentence: str
    advice: str
    facts: dict[str, Any] = field(default_factory=dict)


def broken_sentence(
    finding: Finding,
    *,
    side: str = "",
    router: str = "",
    port: str = "",
    at: datetime | None = None,
    removing: bool = False,
) -> str:
    """Return the sentence about a problem.

    A problem at one end has ``side`` ("a" or "z"), ``router`` and ``port``. ``removing``: the line is
    suspended because its removal is ordered.
    """
    facts = {
        "end": _SIDES[side] if side else "",
        "router": router,
        "port": port,
        "at": time_text(at) if at else "",
    }
    return (_REMOVING if removing else SENTENCES[finding]).format(**facts)


def verdict_of(line: LineFacts, checks: Iterable[Check]) -> Verdict:
    """Return the verdict. The first broken check decides. If none is broken, the first unknown check decides.

    The order of findings has two exceptions:

    * The findings in _COME_LAST come after all others.
    * Maintenance of a router comes before the findings that it explains. If it explains no finding, the
      verdict mentions it at the end. If the line has no fault, the verdict then has the code of the
      maintenance.
    """
    checks = list(checks)
    broken = [check for check in checks if check.state == CheckState.BROKEN]
    works = [check for check in broken if check.finding == Finding.MAINTENANCE]
    faults = [check for check in broken if check.finding != Finding.MAINTENANCE]
    fault = min(faults, key=lambda check: _COME_LAST.get(check.finding, 0), default=None)
    for work in works:
        if _lacks_reports(checks) if fault is None else _explains(work, fault):
            return _found(line, work)
    found = _found(line, fault) if fault is not None else _without_fault(checks)
    if not works:
        return found
    places = [{"router": line.ends[work.side].router, "side": work.side} for work in works]
    return replace(
        found,
        code=found.code if fault is not None else _code(works[0]),
        sentence=" ".join([found.sentence, *(_work_sentence(**place) for place in places)]),
        facts=found.facts | {_WORKS: places},
    )


def stored_sentence(verdict: Mapping[str, Any], facts: Mapping[str, Any] | None) -> str:
    """Return, in the reader's language, the sentence of a verdict that a trouble report has stored as JSON.

    Return the stored sentence if an older release stored no facts, or if a newer release stored a finding
    that this release does not know.
    """
    stored = dict(facts or {})
    works = stored.pop(_WORKS, [])
    if not stored and (works or verdict["code"] in _UNBROKEN):
        sentence = str(_UNBROKEN.get(verdict["code"], _UNBROKEN[IN_ORDER]))
    elif not stored or stored["finding"] not in _FINDINGS:
        return str(verdict["sentence"])
    else:
        at = datetime.fromisoformat(stored["at"]) if stored["at"] else None
        sentence = broken_sentence(**{**stored, "finding": Finding(stored["finding"]), "at": at})
    return " ".join([sentence, *(_work_sentence(**place) for place in works)])


def _explains(work: Check, fault: Check) -> bool:
    return fault.finding in _EXPLAINED_BY_WORK and fault.side in ("", work.side)


def _work_sentence(*, router: str, side: str) -> str:
    return _("The NOC is working on {router}, at {end}.").format(router=router, end=_SIDES[side])


def _found(line: LineFacts, check: Check) -> Verdict:
    end = line.ends.get(check.side)
    facts: dict[str, Any] = {
        "finding": check.finding,
        "side": check.side,
        "router": end.router if end else "",
        "port": end.port if end else "",
        "at": check.at,
        "removing": check.finding == Finding.SUSPENDED and line.lifecycle == Lifecycle.PENDING_TERMINATE,
    }
    advice = _UNDO_REMOVAL if facts["removing"] else ADVICE[check.finding]
    return Verdict(_code(check), broken_sentence(**facts), str(advice), facts)


def _code(check: Check) -> str:
    return f"{check.side}-{check.finding}" if check.side else check.finding.value


def _without_fault(checks: Sequence[Check]) -> Verdict:
    if _lacks_reports(checks):
        return Verdict(NOT_KNOWN, str(_UNBROKEN[NOT_KNOWN]), str(_("Check again in a minute.")))
    advice = _("If your traffic still does not arrive, report to the NOC what you see.")
    return Verdict(IN_ORDER, str(_UNBROKEN[IN_ORDER]), str(advice))


def _lacks_reports(checks: Iterable[Check]) -> bool:
    silent = (check for check in checks if check.state == CheckState.UNKNOWN and check.side)
    return any(check.code.endswith(("_router", "_port_link")) for check in silent)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    verdict: Verdict
    checks: list[Check]

    def as_document(self, *, for_noc: bool) -> dict[str, Any]:
        """Return the response of ``GET /api/v1/vlls/<id>/diagnosis``.

        ``for_noc``: the response contains details of routers, which only the NOC may see.
        """
        return {
            "verdict": {
                "code": self.verdict.code,
                "sentence": self.verdict.sentence,
                "advice": self.verdict.advice,
            },
            "checks": [
                {
                    "code": check.code,
                    "state": check.state.value,
                    "evidence": check.evidence,
                    "at": check.at,
                    "detail": check.detail if for_noc else "",
                }
                for check in self.checks
            ],
        }


def diagnosis_of(vll: Vll, *, now: datetime) -> Diagnosis:
    """Return the diagnosis of a line from the agents' last reports, without a query of the routers."""
    line = facts_of(vll, now=now)
    checks = checks_of(line)
    return Diagnosis(verdict_of(line, checks), checks)

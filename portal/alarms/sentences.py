"""The texts of alarms: a headline, and a note with details.

A newer release may have stored an alarm, during an upgrade of several machines or before a downgrade. This
release may not know the alarm's kind or its facts. The texts then say so.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.alarms.kinds import Kind
from portal.core.reader_texts import grouped_text, moment_text, number_text, offset_text, part_text, rate_text
from portal.diagnosis.diagnosis import stored_sentence
from portal.netbox_sync.netbox_status import error_sentence
from portal.notifications.webhook_operations import why_disabled
from portal.vll.sentences import black_hole_text, failure_sentence
from portal.vll.states import OrderAction, OrderState

log = logging.getLogger(__name__)

Facts = Mapping[str, Any]

# ``{name}`` is the name of the object.
HEADLINES: dict[str, str] = {
    Kind.REPORTS_AWAY: gettext_noop("The portal receives no reports from any router"),
    Kind.ROUTER_SILENT: gettext_noop("{name} is silent"),
    Kind.VPP_AWAY: gettext_noop("{name} has no VPP"),
    Kind.VPP_HANGS: gettext_noop("VPP hangs on {name}"),
    Kind.PATH_DOWN: gettext_noop("The path {name} is down"),
    Kind.PORT_DOWN: gettext_noop("{name} has no link"),
    Kind.LINE_DOWN: gettext_noop("{name} is down"),
    Kind.BLACK_HOLE: gettext_noop("MTU black hole on {name}"),
    Kind.TROUBLE: gettext_noop("A customer reports trouble with {name}"),
    Kind.ROUTER_DIFFERS: gettext_noop("{name} is not configured as it should be"),
    Kind.LINE_DIFFERS: gettext_noop("{name} is not configured as ordered"),
    Kind.CONTESTED: gettext_noop("Somebody else is changing lines on {name}"),
    Kind.VLAN_LOSS: gettext_noop("A router drops frames of {name}"),
    Kind.LOSSES: gettext_noop("{name} loses frames"),
    Kind.ORDER_OVERDUE: gettext_noop("The order for {name} is overdue"),
    Kind.ORDER_FAILED: gettext_noop("The order for {name} failed"),
    Kind.AGENT_AHEAD: gettext_noop("The agent of {name} is ahead of the database"),
    Kind.RELAY: gettext_noop("The relay is not sending messages"),
    Kind.QUEUE_UNSERVED: gettext_noop("No worker takes the tasks of the queue {name}"),
    Kind.FEW_BUFFERS: gettext_noop("VPP on {name} is short of buffers"),
    Kind.TEST_FAILED: gettext_noop("The activation test {name} failed"),
    Kind.UNCONFIRMED: gettext_noop("No router has confirmed the removal of {name}"),
    Kind.LINK_MTU: gettext_noop("The MTUs of {name} conflict"),
    Kind.LINK_INTERFACE: gettext_noop("{name}: an interface is missing"),
    Kind.FILES_ASIDE: gettext_noop("The agent of {name} could not use its files"),
    Kind.CERTIFICATE_ENDS: gettext_noop("The certificate of {name} ends soon"),
    Kind.CLOCK_WRONG: gettext_noop("The clock of {name} is wrong"),
    Kind.MAILS: gettext_noop("The mail server does not accept mail"),
    Kind.WEBHOOK: gettext_noop("The webhook {name} was disabled"),
    Kind.NETBOX: gettext_noop("NetBox does not answer, or was last read too long ago"),
    Kind.NETBOX_LINES: gettext_noop("NetBox refuses lines"),
    Kind.PATH_UNHEARD: gettext_noop("The path {name} cannot be watched"),
    Kind.ORDER_PENDING_APPROVAL: gettext_noop("The order for {name} is pending approval"),
    Kind.WITHHELD: gettext_noop("{name} is locked, frozen or under maintenance"),
    Kind.PORT_SLOW: gettext_noop("{name} runs below its agreed speed"),
    Kind.PORT_FULL: gettext_noop("{name} is almost fully booked"),
    Kind.ROUTER_FULL: gettext_noop("The cores of {name} are almost fully booked"),
}
_UNKNOWN_KIND = gettext_noop("{name}: an alarm of the unknown kind “{kind}”")
_SILENCE_NOTES = {
    "down": gettext_noop("There is no sign of life from it: its lines count as down."),
    "forwards": gettext_noop("Its VPP is still forwarding: check the agent."),
    "unknown": gettext_noop("Its lines may be down."),
    "unheard": gettext_noop("It has never reported."),
}
_LOSSES = {
    "rx_miss": gettext_noop("missed: {frames}"),
    "rx_errors": gettext_noop("broken: {frames}"),
    "rx_no_buffer": gettext_noop("no buffer: {frames}"),
    "tx_errors": gettext_noop("not sent: {frames}"),
}

# Names of the portal's parts for readers. The key is the beginning of the names of the part's tasks.
_WAITING = {
    "accounts": gettext_noop("accounts"),
    "alarms": gettext_noop("alarms"),
    "api": gettext_noop("the API"),
    "imports": gettext_noop("an import"),
    "netbox": gettext_noop("NetBox"),
    "notifications": gettext_noop("mails and webhooks"),
    "provisioning": gettext_noop("routers and lines"),
    "telemetry": gettext_noop("traffic figures"),
}
_OTHER_WORK = gettext_noop("the portal's own work")


def headline(kind: str) -> str:
    """Return the headline of a kind. It has the placeholders ``name`` and ``kind``."""
    return _(HEADLINES.get(kind, _UNKNOWN_KIND))


def kind_label(kind: str) -> str:
    """Return the heading of a kind. If this release does not know the kind, return its stored name."""
    return str(dict(Kind.choices).get(kind, kind))


def note(kind: str, facts: Facts) -> str:
    """Return the text below the headline. Return "" if the headline says everything."""
    if kind not in HEADLINES:
        return _(
            "A newer release of the portal raised this alarm. This release does not know its kind and cannot"
            " check it: the alarm stays until a newer release clears it."
        )
    write_note = _NOTES.get(kind)
    if write_note is None:
        return ""
    try:
        return _(write_note) if isinstance(write_note, str) else write_note(facts)
    except (AttributeError, LookupError, TypeError, ValueError):
        log.warning("alarm of the kind %s: its facts cannot be read: %s", kind, facts, exc_info=True)
        return _("Another release of the portal wrote the details of this alarm. They cannot be shown.")


def _trouble(facts: Facts) -> str:
    sentence = stored_sentence(facts, facts["facts"]) if "code" in facts else facts["sentence"]
    return f"{sentence} {facts['note']}".strip()


def _contested(facts: Facts) -> str:
    template = _("{field} of {object} keeps being changed to “{actual}”; repairs so far: {repairs}")
    return "; ".join(template.format(**each) for each in facts["changes"])


def _vlan_loss(facts: Facts) -> str:
    texts = {
        "dropped": _(
            "VPP drops its frames. The agent does not repair it now: drift is only reported, or the router is"
            " frozen."
        ),
        "not_restored": _(
            "VPP drops its frames. The sub-interface was created again once, which did not help."
            " It is not repeated automatically."
        ),
        "not_examined": _("No frame arrives. Whether VPP drops them could not be examined."),
    }
    operator = _("To create the sub-interface again, use the router's page or run there: {command}")
    sentences = []
    for end in facts["ends"]:
        command = f"longline-agent rebuild -vll {facts['vll']} -end {end['end']}"
        sentences.append(f"{texts[end['state']]} {end['detail']}. {operator.format(command=command)}")
    return " ".join(sentences)


def _certificate_ends(facts: Facts) -> str:
    text = _(
        "It ends at {ends} and was not renewed. Without a valid certificate, the router cannot report"
        " and gets no orders: see its agent’s log, or enrol it again."
    )
    return text.format(ends=moment_text(datetime.fromisoformat(facts["ends"]).replace(tzinfo=UTC)))


def _withheld(facts: Facts) -> str:
    if facts["held"]:
        return _("Nothing is sent to it.")
    if facts.get("frozen"):
        return _("It is frozen: nothing is changed on it until somebody has reviewed it.")
    return _("It accepts no new work.")


def _losses(facts: Facts) -> str:
    why = ", ".join(
        _(_LOSSES[name]).format(frames=grouped_text(count)) for name, count in facts["reasons"].items()
    )
    return _("{percent} in the last 10 minutes: {why}. Received {rx}, sent {tx}.").format(
        percent=part_text(facts["ratio"]),
        why=why,
        rx=grouped_text(facts["rx_packets"]),
        tx=grouped_text(facts["tx_packets"]),
    )


def _order(facts: Facts) -> str:
    """Return the details of an order. The headline already has the state of the order."""
    return f"{facts['customer']}: {OrderAction(facts['action']).label}"


def _relay(facts: Facts) -> str:
    part = facts["first"].partition(".")[0]
    return _("Messages waiting: {messages}. The first is about {what}.").format(
        messages=grouped_text(facts["messages"]), what=_(_WAITING.get(part, _OTHER_WORK))
    )


def _mails(facts: Facts) -> str:
    # An alarm that the previous release stored has no "reader"; take it from "first".
    reader = facts["reader"] if "reader" in facts else facts["first"].rpartition(" → ")[2]
    return _("Mails waiting: {mails}. The first is to {reader}. {error}").format(
        mails=grouped_text(facts["mails"]), reader=reader, error=facts["error"]
    )


def _webhook(facts: Facts) -> str:
    whose = facts["customer"] or _("NOC")
    return f"{whose}. {why_disabled(facts['because'])}"


def _netbox_lines(facts: Facts) -> str:
    return _("Lines: {lines}. The first: {first}. {why}").format(
        lines=facts["lines"], first=facts["first"], why=error_sentence(facts["error"] or {})
    )


def _slow_port(facts: Facts) -> str:
    if facts["booked"] > facts["left"]:
        text = _(
            "{runs} of {agreed}. {booked} is booked, but only {left} can be kept. New orders are refused."
        )
    else:
        text = _("{runs} of {agreed}. {booked} of the remaining {left} is booked.")
    return text.format(**{name: rate_text(facts[name]) for name in ("runs", "agreed", "booked", "left")})


def _booked_cores(facts: Facts) -> str:
    return _("{percent} %: {booked} of {all} cores").format(
        percent=facts["percent"], booked=number_text(facts["booked"]), all=number_text(facts["all"])
    )


# The note of each kind: a text, or a function of the facts.
_NOTES: dict[str, str | Callable[[Facts], str]] = {
    Kind.REPORTS_AWAY: gettext_noop(
        "Its agent API is not working, cannot reach the database, or cannot keep up with the reports."
        " What is shown of lines may be out of date."
    ),
    Kind.ROUTER_SILENT: lambda facts: _(_SILENCE_NOTES[facts["standing"]]),
    Kind.VPP_AWAY: gettext_noop("Its agent reports, but finds no VPP."),
    Kind.VPP_HANGS: gettext_noop(
        "It accepts connections but does not answer. It may still be forwarding. VPP must be restarted."
    ),
    Kind.PATH_DOWN: lambda facts: (
        _("There is no route between the two routers.")
        if facts["why"] == "no_route"
        else _("The two routers no longer receive each other's BFD packets.")
    ),
    Kind.PATH_UNHEARD: gettext_noop(
        "They have never received each other's BFD packets: UDP port 4784 may be filtered along the way."
    ),
    Kind.BLACK_HOLE: black_hole_text,
    Kind.TROUBLE: _trouble,
    Kind.CONTESTED: _contested,
    Kind.VLAN_LOSS: _vlan_loss,
    Kind.FILES_ASIDE: lambda facts: "; ".join(f"{each['file']}: {each['why']}" for each in facts["files"]),
    Kind.CERTIFICATE_ENDS: _certificate_ends,
    Kind.WITHHELD: _withheld,
    Kind.LOSSES: _losses,
    Kind.FEW_BUFFERS: lambda facts: _(
        "Only {free} of {all} were free at one point in the last 10 minutes; without free buffers nothing "
        "is received."
    ).format(free=grouped_text(facts["free"]), all=grouped_text(facts["all"])),
    Kind.ORDER_OVERDUE: lambda facts: f"{_order(facts)}, {OrderState(facts['state']).label}",
    Kind.ORDER_FAILED: _order,
    Kind.ORDER_PENDING_APPROVAL: _order,
    Kind.UNCONFIRMED: lambda facts: str(facts["customer"]),
    Kind.TEST_FAILED: lambda facts: failure_sentence({"message": facts["sentence"], **facts}),
    Kind.CLOCK_WRONG: lambda facts: offset_text(facts["offset_ms"]),
    Kind.RELAY: _relay,
    Kind.QUEUE_UNSERVED: lambda facts: _("Tasks waiting: {messages}. Start a worker for this queue.").format(
        messages=grouped_text(facts["messages"])
    ),
    Kind.MAILS: _mails,
    Kind.WEBHOOK: _webhook,
    Kind.NETBOX: lambda facts: error_sentence(facts["error"]) if facts["error"] else "",
    Kind.NETBOX_LINES: _netbox_lines,
    Kind.PORT_SLOW: _slow_port,
    Kind.PORT_FULL: lambda facts: _("{booked} of {all}").format(
        booked=rate_text(facts["booked"]), all=rate_text(facts["all"])
    ),
    Kind.ROUTER_FULL: _booked_cores,
}

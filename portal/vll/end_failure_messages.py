"""Sentences that explain why a router does not have an end as ordered, for readers who do not know routers.

The agent defines the codes (docs/reference/agent-api.md). The agent's own text quotes VPP and is for the NOC.
"""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

SENTENCES = {
    "unknown_interface": gettext_noop("{router} does not have this port yet ({object})."),
    "local_address_missing": gettext_noop(
        "{router} does not have its address in the network yet ({object})."
    ),
    "port_down": gettext_noop("The port is switched off on {router} ({object})."),
    "vpp_unavailable": gettext_noop("{router} is not ready at the moment."),
    "other_agent": gettext_noop("{router} is being configured by another program at the moment."),
    "stats_segment_full": gettext_noop("{router} has no room for another line."),
    "contested": gettext_noop("Something else on {router} keeps changing this line ({object})."),
    "verify_mismatch": gettext_noop("{router} does not have this line as it was ordered yet ({object})."),
    "foreign_subinterface": gettext_noop("Something else on {router} already uses this VLAN ({object})."),
    "foreign_tunnel": gettext_noop(
        "Something else on {router} already uses what this line needs in the network ({object})."
    ),
    "foreign_xconnect": gettext_noop("Something else on {router} is already connected here ({object})."),
    "port_in_use": gettext_noop("Something else on {router} already uses this port ({object})."),
    "relabelled": gettext_noop("Somebody has taken this line over by hand on {router} ({object})."),
    "adoption_differs": gettext_noop(
        "The configuration on {router} differs from the line that was to be taken over ({object})."
    ),
    "adoption_refused": gettext_noop("{router} does not allow lines of others to be taken over ({object})."),
    "vpp_refused": gettext_noop("{router} could not make this change ({object})."),
    "unsupported": gettext_noop("The software of {router} cannot do what this line needs."),
}


def router_reason_sentence(reason: Mapping[str, Any] | None, *, router: str) -> str:
    """Return the sentence for the ``reason`` of an agent's answer or of a failed order.

    Return the agent's own text for an unknown code, and "" without a reason.
    """
    if not reason:
        return ""
    code, named = str(reason.get("code") or ""), str(reason.get("object") or "")
    if code not in SENTENCES:
        return str(reason.get("message") or code)
    sentence = _(SENTENCES[code])
    return sentence.format(router=router, object=named) if named else _without_object(sentence, router)


def _without_object(sentence: str, router: str) -> str:
    return sentence.replace(" ({object})", "").format(router=router)

"""Sentences about oddities of found lines."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.inventory.found_lines import Odd, Oddity

_SENTENCES = {
    Oddity.NO_FAR_END: gettext_noop(
        "{where} has a tunnel to {remote}, and no router reports the other end of it."
    ),
    Oddity.OTHER_KEY: gettext_noop(
        "{where} has a tunnel to {remote} that has another VNI or GRE key there: {key}."
    ),
    Oddity.CARRIES_NOTHING: gettext_noop(
        "On {where}, {interface} is cross-connected to nothing: the line has no port there."
    ),
    Oddity.BETWEEN_TUNNELS: gettext_noop("{where} joins two tunnels, and has no port of this line."),
    Oddity.ONE_WAY: gettext_noop(
        "On {where}, frames that arrive on {missing_from} are not forwarded: the line carries one"
        " direction only."
    ),
    Oddity.SHUT: gettext_noop("On {where}, {interface} is shut down."),
    Oddity.KEEPS_TAGS: gettext_noop(
        "On {where}, {interface} matches frames by VLAN tags, but does not remove these tags."
    ),
    Oddity.PICKS_WIDELY: gettext_noop(
        "On {where}, {interface} matches frames by “any” or “default”, not by VLANs."
    ),
    Oddity.PICKS_OTHERWISE: gettext_noop(
        "On {where}, {interface} matches frames by a single 802.1ad tag, which the portal does not support."
    ),
    Oddity.ODD_TAG: gettext_noop(
        "On {where}, {interface} has a tag that could not be restored later: it has another character"
        " set, or begins with “longline:”."
    ),
    Oddity.NOT_STANDARD: gettext_noop(
        "On {where}, {interface} has its own UDP port or mode, or VPP does not report its table."
    ),
    Oddity.OTHER_TABLE: gettext_noop(
        "On {where}, {interface} is in table {table}, and the router's underlay is in table {wanted}."
    ),
    Oddity.POLICED: gettext_noop(
        "On {where}, {interface} has a foreign policer, but a line here has its own."
    ),
    Oddity.OTHER_MTU: gettext_noop("The ports have different MTUs: {a} and {z} bytes ({where})."),
}


def odd_sentence(odd: Odd) -> str:
    """Return the sentence in the reader's language."""
    return _(_SENTENCES[odd.code]).format(where=odd.where, **odd.facts)

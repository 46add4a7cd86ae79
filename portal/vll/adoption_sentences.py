"""Sentences for the differences that the adoption of a found line makes."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.units import rate_text
from portal.vll.adoption_differences import AdoptionDifference, Difference

_SENTENCES = {
    Difference.TAG: gettext_noop(
        "The portal's tag replaces the tag “{tag}” of {interface} on {router}, which is restored when"
        " the line is let go of."
    ),
    Difference.PORT_MADE: gettext_noop("{port} of {router} becomes a port of {customer}."),
    Difference.PORT_GIVEN: gettext_noop(
        "{port} of {router} has no customer yet and is assigned to {customer}."
    ),
    Difference.LIMITED: gettext_noop(
        "{rate} are booked at once, and enforced once both routers have the line. The line has no"
        " limit today."
    ),
}


def adoption_sentence(difference: AdoptionDifference) -> str:
    """Return the sentence in the reader's language."""
    facts = dict(difference.facts)
    if "cir_bps" in facts:
        facts["rate"] = rate_text(facts["cir_bps"])
    return _(_SENTENCES[difference.code]).format(**facts)

"""Sentences for the findings on a path."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from portal.core.units import grouped_text
from portal.vll.models import TunnelPath


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

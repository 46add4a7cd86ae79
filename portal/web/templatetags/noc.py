"""Counts for the NOC's navigation, and the values of plans."""

from typing import Any

from django import template
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.netbox_sync.user_messages import KIND_NAMES, PHASES, error_sentence, finding_sentence

register = template.Library()

NOC_ROLES = {
    User.NocRole.NOC.value: _("NOC user"),
    User.NocRole.NOC_ADMIN.value: _("NOC admin"),
    User.NocRole.NONE.value: _("Not NOC staff"),
}


@register.filter
def noc_role(role: str) -> str:
    """The name of a person's role in the NOC."""
    return str(NOC_ROLES[role])


@register.filter
def netbox_error(error: dict[str, Any]) -> str:
    """The reason why a run ended early, or why a line is not in NetBox, in words."""
    return error_sentence(error)


@register.filter
def netbox_finding(finding: dict[str, Any]) -> str:
    """The problem of an object of NetBox, in words."""
    return finding_sentence(finding)


@register.filter
def netbox_kind(kind: str) -> Any:
    """``port`` and its like, in words."""
    return KIND_NAMES.get(kind, kind)


@register.filter
def netbox_phase(phase: str) -> Any:
    """The present phase of a run."""
    return PHASES.get(phase, phase)


@register.filter
def as_json(value: Any) -> str:
    """``true``, ``null`` and numbers as an intent writes them; a text as it is."""
    if value is None:
        return "–"
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Template tags for the state of a path and the results of its test frames."""

from typing import NamedTuple

from django import template
from django.template.loader import render_to_string
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from portal.vll.activation_test_procedure import Finding
from portal.vll.models import TunnelPath
from portal.vll.path_status import TIME, PathStatus

register = template.Library()


class PathState(NamedTuple):
    """The text and the tone of a badge for a path."""

    text: str
    tone: str


@register.simple_tag
def path_state(path: TunnelPath) -> PathState:
    """Return the result of the newest test frames on a path, or the reason why no test frames were sent."""
    if not path.probe_transport:
        return PathState(_("not probed"), "muted")
    if path.black_hole_since is not None:
        return PathState(_("MTU black hole"), "danger")
    if path.probed_at is None:
        built = "conflict" not in (path.a_answer, path.z_answer)
        return PathState(_("not yet"), "muted") if built else PathState(_("probe in conflict"), "warning")
    if path.finding == Finding.NOTHING_ARRIVES:
        return PathState(_("nothing arrives"), "danger")
    if path.finding:
        return PathState(_("frames lost"), "warning")
    return PathState(_("all arrive"), "success")


@register.simple_tag
def path_sentence(path: PathStatus) -> SafeString:
    """Return the sentence about a path's state as HTML, with its time in the usual format of pages."""
    sentence = conditional_escape(path.sentence)
    if path.since is None:
        return sentence
    return mark_safe(sentence.replace(TIME, render_to_string("ui/_time.html", {"at": path.since}).strip()))  # noqa: S308

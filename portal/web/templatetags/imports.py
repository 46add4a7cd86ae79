"""Template filters for the pages about imports."""

from typing import Any

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from portal.imports.models import Import, ImportState
from portal.imports.refusals import sentence
from portal.web.badge_markup import badge_markup

register = template.Library()

_STATES: dict[str, tuple[Any, str]] = {
    ImportState.CHECKING: (_("Being checked"), "info"),
    ImportState.CHECKED: (_("Checked only"), "warning"),
    ImportState.IMPORTING: (_("Being imported"), "info"),
    ImportState.COMPLETED: (_("Imported"), "success"),
    ImportState.CANCELLED: (_("Cancelled"), "muted"),
}


@register.filter
def import_state(this: Import) -> SafeString:
    return badge_markup(*_STATES.get(this.state, (this.state, "muted")))


register.filter("refusal_sentence", sentence)

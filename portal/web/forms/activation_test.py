"""The form to order an activation test of a line."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError
from portal.web.forms.base import TablerForm
from portal.web.forms.moments import MomentField


class ActivationTestForm(TablerForm):
    """The form to order a test, with its start. The largest test frame always follows from the line's MTU."""

    at = MomentField(
        label=_("When"),
        required=False,
        help_text=_("If left empty, the test starts now. At most 90 days ahead."),
    )

    def refuse(self, error: DomainError) -> None:
        """Add an error to the field that it concerns."""
        field: Any = error.field if error.field in self.fields else None
        self.add_error(field, error.sentence)

"""The audit trail. Each tracked table has a table of events, which triggers write and which nobody changes
later.
"""

from typing import Any

import pghistory
from django.db import models

from portal.audit.tracked_tables import TRACKED


def _track(model: type[models.Model], fields: list[str]) -> Any:
    name = f"{model.__name__}Event"
    pghistory.track(
        pghistory.InsertEvent(),
        pghistory.UpdateEvent(),
        pghistory.DeleteEvent(),
        fields=fields,
        context_id_field=None,  # type: ignore[arg-type]
        app_label="audit",
        model_name=name,
    )(model)
    return globals()[name]


EVENTS: dict[type[models.Model], Any] = {
    model: _track(model, fields.split()) for model, fields in TRACKED.items()
}

"""A new column of an audited table is either in the trail, or somebody said why not; secrets never are."""

import pytest
from django.db import models

from portal.audit.models import TRACKED, UNTRACKED

SECRETS = {"password", "digest"}


@pytest.mark.parametrize("model", TRACKED, ids=lambda model: model.__name__)
def test_every_column_is_audited_or_named(model: type[models.Model]) -> None:
    columns = {field.name for field in model._meta.local_concrete_fields}
    said = set(TRACKED[model].split()) | set(UNTRACKED.get(model, "").split())
    assert columns == said


def test_no_secret_is_in_the_trail() -> None:
    assert not SECRETS & {name for fields in TRACKED.values() for name in fields.split()}

"""Every table and column is in the audit trail or in a list of exceptions; secrets are never in the trail."""

import pytest
from django.apps import apps
from django.db import models

from portal.audit.models import EVENTS, NOT_AUDITED, TRACKED, UNTRACKED

SECRETS = {"password", "digest", "secret", "previous_secret"}


def test_every_table_is_audited_or_listed_with_a_reason() -> None:
    tables = {
        model._meta.label
        for model in apps.get_models(include_auto_created=True)
        if model not in EVENTS.values()
    }
    tracked = {model._meta.label for model in TRACKED}
    assert tables - tracked - NOT_AUDITED.keys() == set(), "neither tracked nor named in NOT_AUDITED"
    assert (tracked | NOT_AUDITED.keys()) - tables == set(), "named, but there is no such table"
    assert tracked & NOT_AUDITED.keys() == set()
    assert all(len(reason) > 10 for reason in NOT_AUDITED.values())


@pytest.mark.parametrize("model", TRACKED, ids=lambda model: model.__name__)
def test_every_column_is_audited_or_listed(model: type[models.Model]) -> None:
    columns = {field.name for field in model._meta.local_concrete_fields}
    listed = set(TRACKED[model].split()) | set(UNTRACKED.get(model, "").split())
    assert columns == listed


def test_no_secret_is_in_the_trail() -> None:
    assert not SECRETS & {name for fields in TRACKED.values() for name in fields.split()}

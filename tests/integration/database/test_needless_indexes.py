"""Each index is needed: none is the beginning of another index, and none serves only LIKE."""

import pytest
from django.apps import apps
from django.db import connection

_BEGINNINGS = """
SELECT DISTINCT shorter.indexrelid::regclass::text
FROM pg_index AS shorter
JOIN pg_index AS longer ON longer.indrelid = shorter.indrelid AND longer.indexrelid <> shorter.indexrelid
JOIN pg_class AS one ON one.oid = shorter.indexrelid
JOIN pg_class AS other ON other.oid = longer.indexrelid
JOIN pg_am ON pg_am.oid = one.relam AND amname = 'btree'
WHERE shorter.indrelid = ANY(%s::regclass[]) AND NOT shorter.indisunique AND other.relam = one.relam
  AND shorter.indpred IS NULL AND longer.indpred IS NULL
  AND shorter.indexprs IS NULL AND longer.indexprs IS NULL
  AND longer.indkey::text || ' ' LIKE shorter.indkey::text || ' %%'
  AND longer.indclass::text || ' ' LIKE shorter.indclass::text || ' %%'
ORDER BY 1
"""

_FOR_LIKE = """
SELECT DISTINCT indexrelid::regclass::text
FROM pg_index
JOIN pg_opclass ON pg_opclass.oid = ANY(indclass)
JOIN pg_class ON pg_class.oid = indrelid AND relnamespace = 'public'::regnamespace
WHERE opcname IN ('varchar_pattern_ops', 'text_pattern_ops', 'bpchar_pattern_ops')
ORDER BY 1
"""


@pytest.mark.django_db
def test_no_index_is_the_beginning_of_another() -> None:
    tables = [
        model._meta.db_table
        for model in apps.get_models()
        # Django creates the tables of many-to-many fields.
        if model.__module__.startswith("portal.") and not model._meta.auto_created
    ]
    with connection.cursor() as cursor:
        cursor.execute(_BEGINNINGS, [tables])
        assert [index for (index,) in cursor.fetchall()] == []


@pytest.mark.django_db
def test_no_index_serves_only_like() -> None:
    """Django creates one for ``unique=True`` and ``db_index=True``, but none for a constraint or an Index."""
    with connection.cursor() as cursor:
        cursor.execute(_FOR_LIKE)
        assert [index for (index,) in cursor.fetchall()] == []

"""Imports in requests and responses."""

from typing import Any

from rest_framework import serializers

from portal.api.v1.serializers.event_data import FactsField
from portal.api.v1.serializers.strict_fields import StrictBooleanField, StrictCharField, StrictSerializer
from portal.imports.kinds import KINDS
from portal.imports.models import Import, ImportRow, ImportState
from portal.imports.refusals import sentence


class ImportWriteSerializer(StrictSerializer):
    """A table with rows of one kind. The page *Import* lists its columns."""

    kind = serializers.ChoiceField(choices=list(KINDS))
    dry_run = StrictBooleanField(
        required=False,
        default=False,
        help_text="True only checks the table; a request to `/begin` then imports it.",
    )
    file_name = StrictCharField(required=False, default="", allow_blank=True, max_length=100)
    csv = serializers.CharField(
        trim_whitespace=False,
        help_text="The table with its header, at most 8 MiB. Instead, you can send the file as the body with"
        " `Content-Type: text/csv`, and the other members in the query.",
    )


class RowRefusalSerializer(serializers.Serializer[Any]):
    """A reason against a row. ``column`` is "" if the reason concerns the whole row."""

    column = serializers.CharField()
    code = serializers.CharField()
    detail = serializers.SerializerMethodField()
    facts = FactsField()

    def get_detail(self, refusal: dict[str, Any]) -> str:
        return sentence(refusal)


class ImportSerializer(serializers.ModelSerializer[Import]):
    """An import. ``rows`` is the number of all rows; ``new``, ``same``, ``refused`` and ``made`` count the
    checked rows by result.
    """

    kind = serializers.ChoiceField(choices=list(KINDS))
    state = serializers.ChoiceField(choices=ImportState.values)
    begun_by = serializers.CharField(
        source="begun_by.username",
        default=None,
        allow_null=True,
        help_text="The user who began the import after the check. It then runs with this user's rights. Null:"
        " nobody yet.",
    )
    ended_by = serializers.CharField(
        source="ended_by.username",
        default=None,
        allow_null=True,
        help_text="The user who cancelled it; null if nobody did.",
    )
    rows = serializers.IntegerField(source="total")
    new = serializers.IntegerField(help_text="The number of rows that would be imported.")
    same = serializers.IntegerField(help_text="The number of rows that exist already with equal values.")
    refused = serializers.IntegerField(
        help_text="The number of rows that cannot be imported; `/errors` has the reasons."
    )
    made = serializers.IntegerField(help_text="The number of imported rows.")
    passed_over = serializers.IntegerField(
        source="remarks", help_text="The number of ignored rows: those that begin with `# `."
    )
    stopped_by = RowRefusalSerializer(
        allow_null=True, help_text="The reason if the portal cancelled the import; else null."
    )

    class Meta:
        model = Import
        fields: tuple[str, ...] = (
            "id",
            "kind",
            "state",
            "file_name",
            "asked_by",
            "created_at",
            "begun_at",
            "begun_by",
            "ended_at",
            "ended_by",
            "rows",
            "new",
            "same",
            "refused",
            "made",
            "passed_over",
            "stopped_by",
        )
        read_only_fields = fields
        extra_kwargs = {"asked_by": {"source": "requested_by"}}

    def get_fields(self) -> dict[str, Any]:
        by = serializers.CharField(source="requested_by.username", help_text="The user who sent the table.")
        return super().get_fields() | {"asked_by": by}


class RefusedRowSerializer(serializers.ModelSerializer[ImportRow]):
    """A row that cannot be imported. ``line`` is its line number in the file, from 1."""

    cells = serializers.DictField(child=serializers.CharField())
    surplus = serializers.ListField(
        child=serializers.CharField(), help_text="Cells beyond the last column of the header."
    )
    refusals = RowRefusalSerializer(many=True)

    class Meta:
        model = ImportRow
        fields = ("line", "cells", "surplus", "refusals")

"""Imports over the wire."""

from typing import Any

from rest_framework import serializers

from portal.api.v1.serializers.event_data import FactsField
from portal.api.v1.serializers.strict_fields import StrictBooleanField, StrictCharField, StrictSerializer
from portal.imports.kinds import KINDS
from portal.imports.models import Import, ImportRow, ImportState
from portal.imports.refusals import sentence


class ImportWriteSerializer(StrictSerializer):
    """A table of rows of one kind; its columns are on the page Import."""

    kind = serializers.ChoiceField(choices=list(KINDS))
    dry_run = StrictBooleanField(
        required=False,
        default=False,
        help_text="It is only checked, and imported when that is asked for at `/begin`.",
    )
    file_name = StrictCharField(required=False, default="", allow_blank=True, max_length=100)
    csv = serializers.CharField(
        trim_whitespace=False,
        help_text="The table, its header first; 8 MiB at most. Or send the file itself as the body, with"
        " `Content-Type: text/csv` and the other members in the query.",
    )


class RowRefusalSerializer(serializers.Serializer[Any]):
    """Something that stands against a row. ``column`` "": against the row as a whole."""

    column = serializers.CharField()
    code = serializers.CharField()
    detail = serializers.SerializerMethodField()
    facts = FactsField()

    def get_detail(self, refusal: dict[str, Any]) -> str:
        return sentence(refusal)


class ImportSerializer(serializers.ModelSerializer[Import]):
    """``rows``: how many there are, of which the next four count those that were looked at."""

    kind = serializers.ChoiceField(choices=list(KINDS))
    state = serializers.ChoiceField(choices=ImportState.values)
    asked_by = serializers.CharField(source="asked_by.username")
    begun_by = serializers.CharField(
        source="begun_by.username",
        default=None,
        allow_null=True,
        help_text="Who had it imported, as whom it is done from then on; null: nobody yet.",
    )
    ended_by = serializers.CharField(
        source="ended_by.username",
        default=None,
        allow_null=True,
        help_text="Who cancelled it; null: nobody did.",
    )
    rows = serializers.IntegerField(source="total")
    new = serializers.IntegerField(help_text="Would be imported.")
    same = serializers.IntegerField(help_text="Are there already, just so.")
    refused = serializers.IntegerField(help_text="Cannot be imported; `/errors` says why.")
    made = serializers.IntegerField(help_text="Are imported.")
    passed_over = serializers.IntegerField(source="remarks", help_text="Rows that begin with `# `.")
    stopped_by = RowRefusalSerializer(
        allow_null=True, help_text="Why it was cancelled, where nobody did; null otherwise."
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


class RefusedRowSerializer(serializers.ModelSerializer[ImportRow]):
    """A row that cannot be imported. ``line`` counts the file's lines from 1."""

    cells = serializers.DictField(child=serializers.CharField())
    surplus = serializers.ListField(
        child=serializers.CharField(), help_text="Cells beyond the last column of the header."
    )
    refusals = RowRefusalSerializer(many=True)

    class Meta:
        model = ImportRow
        fields = ("line", "cells", "surplus", "refusals")

"""Samples in quarantine: what waits for a decision, and what it would do to the months of its lines."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.v1.serializers.strict_fields import StrictCharField, StrictSerializer
from portal.telemetry.models import Quarantine
from portal.telemetry.sample_quarantine_decisions import given_up_at
from portal.telemetry.sample_quarantine_preview import MonthPreview, span_of


class QuarantineSerializer(serializers.ModelSerializer[Quarantine]):
    """Samples of one router, set aside for one reason; one decision is about all of them."""

    router = serializers.CharField(source="router.name")
    month = serializers.SerializerMethodField(
        help_text="The calendar month (UTC) that they are of, corrected, as 2026-11. Null: their time is not"
        " known, and they can only be discarded."
    )
    offset_ms = serializers.IntegerField(
        help_text="The portal's time minus the router's, measured when they were sent: below 0 the router's"
        " clock is ahead."
    )
    first_ms = serializers.IntegerField(
        help_text="Their beginning by the router's clock, epoch milliseconds."
    )
    last_ms = serializers.IntegerField(help_text="Their end by the router's clock, epoch milliseconds.")
    first_at = serializers.SerializerMethodField(help_text="Their beginning, corrected.")
    last_at = serializers.SerializerMethodField(help_text="Their end, corrected.")
    samples = serializers.IntegerField(help_text="Of each end of a line one.")
    waited = serializers.IntegerField(
        help_text="Of these, how many waited more than 5 minutes before they were sent: had the clock been"
        " set meanwhile, nothing would show it."
    )
    lines = serializers.IntegerField()
    decided_by = serializers.CharField(source="decided_by.username", allow_null=True, default=None)
    why = serializers.CharField(help_text="Why they were discarded.")
    counted_at = serializers.DateTimeField(
        allow_null=True, help_text="When what was accepted had been added, and frozen months corrected."
    )
    given_up_at = serializers.SerializerMethodField(
        help_text="When what nobody has decided about is given up; null once it is decided."
    )

    class Meta:
        model = Quarantine
        fields = [
            *("id", "router", "reason", "month", "offset_ms", "first_ms", "last_ms", "first_at", "last_at"),
            *("samples", "waited", "lines", "first_received_at", "last_received_at", "state", "decided_at"),
            *("decided_by", "why", "counted_at", "given_up_at"),
        ]

    def get_month(self, found: Quarantine) -> str | None:
        return f"{found.month:%Y-%m}" if found.month else None

    def get_first_at(self, found: Quarantine) -> datetime | None:
        span = span_of(found)
        return span[0] if span else None

    def get_last_at(self, found: Quarantine) -> datetime | None:
        span = span_of(found)
        return span[1] if span else None

    def get_given_up_at(self, found: Quarantine) -> datetime | None:
        return given_up_at(found) if found.state == Quarantine.State.UNDECIDED else None


class DiscardSerializer(StrictSerializer):
    """``reason``: it is kept with the decision."""

    reason = StrictCharField(max_length=500, several_lines=True)


class QuarantinedEndSerializer(serializers.Serializer[Any]):
    """``added``: 5 minutes that were, or would be, added; ``left_out``: those that are counted already."""

    side = serializers.ChoiceField(choices=["a", "z"])
    samples = serializers.IntegerField()
    added = serializers.IntegerField()
    left_out = serializers.IntegerField()


class MonthRatesSerializer(serializers.Serializer[Any]):
    """95th percentiles in bit/s, null where nothing was counted; how many 5 minutes were, and were not."""

    out = serializers.IntegerField(allow_null=True)
    max = serializers.IntegerField(allow_null=True)
    counted = serializers.IntegerField()
    missing = serializers.IntegerField()

    def get_fields(self) -> dict[str, Any]:
        # "in" cannot be a class attribute's name.
        return {"in": serializers.IntegerField(allow_null=True), **super().get_fields()}


class MonthFiguresSerializer(serializers.Serializer[Any]):
    """Of the month: each end's percentiles, and the frames lost (0 to 1, null where not measured) by 5
    minutes."""

    a_end = MonthRatesSerializer(source="p95.a")
    z_end = MonthRatesSerializer(source="p95.z")
    compared = serializers.IntegerField(source="loss.compared")
    a_to_z_loss_ratio = serializers.FloatField(source="loss.a_to_z.loss_ratio", allow_null=True)
    z_to_a_loss_ratio = serializers.FloatField(source="loss.z_to_a.loss_ratio", allow_null=True)
    a_to_z_bound_ratio = serializers.FloatField(source="loss.a_to_z.bound_ratio", allow_null=True)
    z_to_a_bound_ratio = serializers.FloatField(source="loss.z_to_a.bound_ratio", allow_null=True)


class QuarantinedLineSerializer(serializers.Serializer[Any]):
    """A line in a quarantine. ``now`` and ``accepted``: its month without and with these samples; null once
    it is decided. Availability does not come from samples."""

    vll = serializers.UUIDField(source="vll.pk")
    description = serializers.CharField(source="vll.description")
    customer = serializers.CharField(source="vll.customer.name")
    ends = serializers.SerializerMethodField()
    now = MonthFiguresSerializer(source="before", allow_null=True)
    accepted = MonthFiguresSerializer(source="after", allow_null=True)

    @extend_schema_field(QuarantinedEndSerializer(many=True))
    def get_ends(self, each: MonthPreview) -> list[dict[str, Any]]:
        return [
            {"side": side, "samples": samples, "added": each.added[side], "left_out": each.left_out[side]}
            for side, samples in each.samples.items()
        ]

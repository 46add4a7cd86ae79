"""Samples in quarantine, and the effect of their acceptance on the months of their lines, as JSON."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.rest.strict_fields import StrictCharField, StrictSerializer
from portal.telemetry.models import Quarantine
from portal.telemetry.sample_quarantine_decisions import given_up_at
from portal.telemetry.sample_quarantine_preview import MonthPreview, span_of


class QuarantineSerializer(serializers.ModelSerializer[Quarantine]):
    """Samples of one router that are quarantined for one reason. One decision applies to all of them."""

    router = serializers.CharField(source="router.name")
    month = serializers.SerializerMethodField(
        help_text="The calendar month (UTC) of the samples by their corrected time, such as 2026-11. Null if"
        " their time is unknown: they can then only be discarded."
    )
    offset_ms = serializers.IntegerField(
        help_text="The portal's time minus the router's time, measured when the samples were sent. Below 0,"
        " the router's clock is ahead."
    )
    first_ms = serializers.IntegerField(
        help_text="The beginning of the first sample by the router's clock, in epoch milliseconds."
    )
    last_ms = serializers.IntegerField(
        help_text="The end of the last sample by the router's clock, in epoch milliseconds."
    )
    first_at = serializers.SerializerMethodField(
        help_text="The beginning of the first sample, as corrected time."
    )
    last_at = serializers.SerializerMethodField(help_text="The end of the last sample, as corrected time.")
    samples = serializers.IntegerField(help_text="The number of samples; each end of a line counts as one.")
    waited = serializers.IntegerField(
        help_text="The number of these samples that waited more than 5 minutes before they were sent. Their"
        " corrected time is wrong if the router's clock was set during that time."
    )
    lines = serializers.IntegerField()
    decided_by = serializers.CharField(source="decided_by.username", allow_null=True, default=None)
    why = serializers.CharField(help_text="The reason for discarding them.")
    counted_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the accepted samples had been added and the final months corrected; else null.",
    )
    given_up_at = serializers.SerializerMethodField(
        help_text="When the samples expire without a decision; null after a decision."
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
    """The reason for discarding the samples. It is stored with the decision."""

    reason = StrictCharField(max_length=500, several_lines=True)


class QuarantinedEndSerializer(serializers.Serializer[Any]):
    """An end of a line in a quarantine, with numbers of 5-minute intervals.

    ``added``: the intervals that an acceptance would add. ``left_out``: the intervals that are already
    counted.
    """

    side = serializers.ChoiceField(choices=["a", "z"])
    samples = serializers.IntegerField()
    added = serializers.IntegerField()
    left_out = serializers.IntegerField()


class MonthRatesSerializer(serializers.Serializer[Any]):
    """95th percentiles in bit/s; null if the month has no counts. ``counted`` and ``missing``: the numbers of
    5-minute intervals.
    """

    out = serializers.IntegerField(allow_null=True)
    max = serializers.IntegerField(allow_null=True)
    counted = serializers.IntegerField()
    missing = serializers.IntegerField()

    def get_fields(self) -> dict[str, Any]:
        # "in" is a Python keyword, so the class body cannot define an attribute with this name.
        return {"in": serializers.IntegerField(allow_null=True), **super().get_fields()}


class MonthFiguresSerializer(serializers.Serializer[Any]):
    """The figures of a month, from 5-minute intervals: the percentiles of each end, and the ratios of lost
    frames (0 to 1; null if not measured).
    """

    a_end = MonthRatesSerializer(source="p95.a")
    z_end = MonthRatesSerializer(source="p95.z")
    compared = serializers.IntegerField(source="loss.compared")
    a_to_z_loss_ratio = serializers.FloatField(source="loss.a_to_z.loss_ratio", allow_null=True)
    z_to_a_loss_ratio = serializers.FloatField(source="loss.z_to_a.loss_ratio", allow_null=True)
    a_to_z_bound_ratio = serializers.FloatField(source="loss.a_to_z.bound_ratio", allow_null=True)
    z_to_a_bound_ratio = serializers.FloatField(source="loss.z_to_a.bound_ratio", allow_null=True)


class QuarantinedLineSerializer(serializers.Serializer[Any]):
    """A line in a quarantine. ``now``: the line's month without the quarantined samples. ``accepted``: the
    month with these samples. Both are null after the decision. Availability does not depend on samples.
    """

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

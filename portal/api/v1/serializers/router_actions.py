"""The NOC's actions on a router, its calibration, and the progress of a drain, as JSON."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from portal.api.v1.serializers.strict_fields import StrictBooleanField, StrictCharField, StrictSerializer
from portal.core.encapsulations import Transport
from portal.inventory.models.router_freeze import LONGEST_REASON
from portal.vll.models import VllEnd
from portal.vll.router_operations.drain import DrainStep, drain_step

CARE = (
    *("maintenance-begin", "maintenance-end", "drain-begin", "drain-end", "hold", "release", "retry"),
    *("reconcile", "declare-dead", "declare-alive", "freeze", "unfreeze", "freeze-looked"),
)


class RouterActionSerializer(StrictSerializer):
    """An action on a router.

    * ``accept_affected``: allows a drain even if lines in service no longer fit the remaining paths.
    * ``reason``: required for `declare-dead` (only NOC admins) and `freeze`.
    * ``until``: the end of a freeze.
    """

    do = serializers.ChoiceField(choices=CARE)
    accept_affected = StrictBooleanField(required=False, default=False)
    reason = StrictCharField(required=False, max_length=500, several_lines=True)
    until = serializers.DateTimeField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        wrong: dict[str, ErrorDetail] = {}
        if attrs["do"] in ("declare-dead", "freeze") and "reason" not in attrs:
            wrong["reason"] = ErrorDetail(_("Give a reason: it is kept with the router."), code="required")
        if attrs["do"] == "freeze" and len(attrs.get("reason", "")) > LONGEST_REASON:
            too_long = _("Enter a reason for the freeze, of up to {n} characters.").format(n=LONGEST_REASON)
            wrong["reason"] = ErrorDetail(too_long, code="max_length")
        if attrs["do"] == "freeze" and "until" not in attrs:
            wrong["until"] = ErrorDetail(_("Enter the end of the freeze."), code="required")
        if wrong:
            raise serializers.ValidationError({name: [detail] for name, detail in wrong.items()})
        return attrs


class CalibrationWriteSerializer(StrictSerializer):
    """A calibration. ``calibration``: the output of ``longline-agent calibrate -json`` on this router. With
    null, the shipped table applies again. ``accept_affected`` allows the change even if the router's lines
    then need more cores than the router has.
    """

    calibration = serializers.DictField(allow_null=True)
    accept_affected = StrictBooleanField(required=False, default=False)


class TransportCostSerializer(serializers.Serializer[Any]):
    """The cost of a transport on a router.

    * ``clocks``: measured clocks per frame of 64 bytes; null if not measured.
    * ``mpps_per_core``: the rate that order checks use, in millions of such frames per second and core.
    * ``mpps_by_table``: the rate in the shipped table, in the same unit.
    """

    transport = serializers.ChoiceField(choices=[transport.value for transport in Transport])
    clocks = serializers.FloatField(allow_null=True)
    mpps_per_core = serializers.FloatField()
    mpps_by_table = serializers.FloatField()


class CalibrationSerializer(serializers.Serializer[Any]):
    """The cost of each transport on a router. ``measured_at``, ``vpp_version``, ``cpu`` and ``clock_hz`` are
    null if the shipped cost table applies because no calibration has been accepted.
    """

    measured_at = serializers.DateTimeField(allow_null=True)
    vpp_version = serializers.CharField(allow_null=True)
    cpu = serializers.CharField(allow_null=True)
    clock_hz = serializers.FloatField(allow_null=True)
    transports = TransportCostSerializer(many=True)


class DrainProgressSerializer(serializers.Serializer[Any]):
    """The progress of a drain. ``carrying``: the number of ends that forward or may forward. ``leaving``: the
    number of ends that moved away but whose removal the router has not confirmed.
    """

    drained_since = serializers.DateTimeField(allow_null=True)
    carrying = serializers.IntegerField()
    stopped = serializers.IntegerField()
    leaving = serializers.IntegerField()
    is_drained = serializers.BooleanField()


class DrainEndSerializer(serializers.ModelSerializer[VllEnd]):
    """An end on the router, and the next step for its line."""

    description = serializers.CharField(source="vll.description")
    customer = serializers.CharField(source="vll.customer.name")
    lifecycle = serializers.CharField(source="vll.lifecycle")
    port_name = serializers.CharField(source="port.__str__")
    step = serializers.SerializerMethodField(
        help_text="move: the customer has a port on another router; suspend: the customer has none; wait: an"
        " order is under way; stopped: the end forwards nothing."
    )

    class Meta:
        model = VllEnd
        fields = ["vll", "side", "description", "customer", "lifecycle", "port", "port_name", "step"]

    def get_step(self, end: VllEnd) -> DrainStep:
        return drain_step(end)

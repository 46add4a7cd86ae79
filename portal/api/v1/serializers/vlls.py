"""VLLs in responses."""

from typing import Any, TypedDict

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.rest.event_data import FactsField
from portal.api.v1.serializers.orders import OUTER_VLAN, ordered_outer_vlan
from portal.api.v1.serializers.precomputed_reads import PrecomputedReads
from portal.diagnosis.health import Health, HealthState, known_health
from portal.vll.line_spec import END, LINE
from portal.vll.models import Vll, VllEnd
from portal.vll.path_status import PathStatus, Unwatched, path_status
from portal.vll.policing_status import unpoliced, unpoliced_text


class UnpolicedReason(TypedDict):
    """The reason why an end is not policed: a stable code, and a sentence with the same meaning."""

    code: str
    message: str


class PathStatusSerializer(PrecomputedReads, serializers.Serializer[PathStatus]):
    """The state of the path between a line's routers. ``since`` is set if the path is up or down. Otherwise
    ``why`` is set.
    """

    state = serializers.ChoiceField(choices=["up", "down", "starting", "not_watched"])
    since = serializers.DateTimeField(allow_null=True)
    why = serializers.ChoiceField(choices=[why.value for why in Unwatched], allow_null=True)
    message = serializers.CharField()


class HealthSerializer(serializers.Serializer[Health]):
    """The state of a line in one word. ``cause`` is a sentence, or null for a healthy line."""

    state = serializers.ChoiceField(choices=HealthState.values)
    cause = serializers.CharField(allow_null=True)
    since = serializers.DateTimeField(allow_null=True)


class VllEndSerializer(PrecomputedReads, serializers.ModelSerializer[VllEnd]):
    """One end of a line: its place, the selection of its frames, and the last response of its router."""

    port_name = serializers.CharField(source="port.__str__")
    router = serializers.CharField(source="port.router.name")
    site = serializers.CharField(source="port.router.site.name")
    requested_outer_vlan = serializers.SerializerMethodField()
    reason = FactsField(read_only=True)
    unpoliced_reason = serializers.SerializerMethodField()

    class Meta:
        model = VllEnd
        fields = [
            "port",
            "port_name",
            "router",
            "site",
            "tagging",
            "outer_vlan",
            "requested_outer_vlan",
            "inner_vlan",
            *(each.name for each in END if each.is_flag),
            "tunnel_address",
            "status",
            "status_revision",
            "reason",
            "policed",
            "unpoliced_reason",
            "held_down",
        ]
        extra_kwargs = {"held_down": {"source": "shut_down"}}

    @extend_schema_field({"oneOf": [*OUTER_VLAN["oneOf"], {"type": "null"}]})
    def get_requested_outer_vlan(self, end: VllEnd) -> int | str | None:
        """The ordered outer VLAN: a number, "any", or null for a whole port."""
        return ordered_outer_vlan(requested=end.requested_outer_vlan, allocated=end.outer_vlan)

    def get_unpoliced_reason(self, end: VllEnd) -> UnpolicedReason | None:
        """The reason why the router does not enforce the bandwidth profile at this end; null if it does."""
        why = unpoliced(end)
        return None if why is None else {"code": why.value, "message": unpoliced_text(end, why)}


# All rows share these serializers, because constructing one takes longer than using it.
_END = VllEndSerializer()
_PATH = PathStatusSerializer()


class VllSerializer(PrecomputedReads, serializers.ModelSerializer[Vll]):
    """A line: its health, the five facts from which its health is derived, and its ordered and allocated
    values. Sizes in bytes, rates in bit/s.
    """

    # Before a list is serialized, ``with_health`` must have been called on its rows.
    health = serializers.SerializerMethodField()
    customer = serializers.CharField(source="customer.name")
    transport = serializers.CharField()
    policed = serializers.BooleanField(read_only=True)
    path = serializers.SerializerMethodField()
    cbs_bytes = serializers.IntegerField(source="profile.cbs_bytes", read_only=True)
    ebs_bytes = serializers.IntegerField(source="profile.ebs_bytes", read_only=True)
    a_end = serializers.SerializerMethodField()
    z_end = serializers.SerializerMethodField()

    class Meta:
        model = Vll
        fields = [
            "id",
            "customer",
            "description",
            "created_at",
            "health",
            "lifecycle",
            "decommission_at",
            "admin_status",
            "oper_status",
            "in_sync",
            "requested_transport",
            "transport",
            "vni",
            "gre_key",
            "svc_mtu",
            "frame",
            "cir_bps",
            "cbs_bytes",
            "requested_cbs_bytes",
            "eir_bps",
            "ebs_bytes",
            "requested_ebs_bytes",
            *(each.name for each in LINE if each.is_flag),
            "policed",
            "path",
            "revision",
            "a_end",
            "z_end",
        ]

    @extend_schema_field(HealthSerializer(allow_null=True))
    def get_health(self, vll: Vll) -> dict[str, Any] | None:
        """The health of the line; null after its end."""
        found = known_health(vll)
        if found is None:
            return None
        return {"state": found.state.value, "cause": found.cause or None, "since": found.since}

    @extend_schema_field(PathStatusSerializer(allow_null=True))
    def get_path(self, vll: Vll) -> dict[str, Any] | None:
        """The state of the path; null for a line that is not in service or has both ends on one router."""
        found = path_status(vll)
        return None if found is None else _PATH.to_representation(found)

    @extend_schema_field(VllEndSerializer)
    def get_a_end(self, vll: Vll) -> dict[str, Any]:
        return self._end(vll, "a")

    @extend_schema_field(VllEndSerializer)
    def get_z_end(self, vll: Vll) -> dict[str, Any]:
        return self._end(vll, "z")

    def _end(self, vll: Vll, side: str) -> dict[str, Any]:
        # The ends are prefetched, so this line does not query the database.
        return _END.to_representation(next(end for end in vll.ends.all() if end.side == side))

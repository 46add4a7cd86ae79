import uuid

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Upper

from portal.accounts.models import Customer
from portal.allocation.models import LAST_GRE_KEY
from portal.core.db.row_conditions import TenantQuerySet
from portal.core.network.bandwidth_profile import MAX_BURST, BandwidthProfile, bandwidth_profile
from portal.core.network.encapsulations import Transport
from portal.core.network.path_bfd import PathState
from portal.core.network.required_mtu import MtuPolicy, overhead
from portal.core.network.vlan_tags import Tagging
from portal.inventory.models import Port
from portal.vll.states import TERMINAL_LIFECYCLES, AdminStatus, Handover, Lifecycle, OperStatus


class Vll(models.Model):
    """A virtual leased line: an EVC with exactly two end points (MEF 6.3 E-Line).

    Requested and allocated values are stored separately. Each change of the wanted state increases
    ``revision``. ``wanted_present`` says whether the routers must have this revision, or must remove the
    line.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="vlls", db_index=False)
    description = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField()

    lifecycle = models.CharField(max_length=20, choices=Lifecycle, default=Lifecycle.PENDING_ACTIVE)
    admin_status = models.CharField(max_length=15, choices=AdminStatus, default=AdminStatus.UP)
    oper_status = models.CharField(max_length=15, choices=OperStatus, default=OperStatus.UNKNOWN)
    in_sync = models.BooleanField(default=False)
    # Since when ``oper_status`` and ``in_sync`` have their values; null: not recorded.
    oper_since = models.DateTimeField(null=True)
    in_sync_since = models.DateTimeField(null=True)
    # Since when a path or port of the line does not carry the line's largest frames, according to the
    # declared and observed network; null: all paths and ports carry them.
    not_carried_since = models.DateTimeField(null=True)

    handover = models.CharField(
        max_length=10, choices=Handover, blank=True, default=Handover.NONE.value, db_default=""
    )

    # Requested values. svc_mtu: largest customer L3 packet in bytes; rates in bit/s; bursts in bytes.
    # portal.core.network.bandwidth_profile chooses bursts that are null. Only the CIR is booked.
    svc_mtu = models.PositiveIntegerField()
    cir_bps = models.BigIntegerField()
    requested_cbs_bytes = models.IntegerField(null=True)
    eir_bps = models.BigIntegerField(default=0)
    requested_ebs_bytes = models.IntegerField(null=True)
    requested_transport = models.CharField(max_length=10)
    # Whether the line takes down the link of one UNI when the other UNI has lost its link.
    link_loss_forwarding = models.BooleanField(default=False, db_default=False)
    # Allocated values. frame: largest carried frame in bytes, without FCS and popped tags.
    encapsulation = models.CharField(max_length=10)
    family = models.PositiveSmallIntegerField(null=True)
    vni = models.IntegerField(null=True)
    # Null also for a GRE tunnel without a key, which has a pair of addresses for itself.
    gre_key = models.BigIntegerField(null=True)
    frame = models.PositiveIntegerField()

    revision = models.PositiveIntegerField(default=1)
    wanted_present = models.BooleanField(default=True)
    # When the removal begins. Before that time, in the cooling-off period, the customer can undo the removal.
    decommission_at = models.DateTimeField(null=True)

    objects = TenantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(lifecycle__in=Lifecycle.values), name="lifecycle_is_a_known_state"
            ),
            models.CheckConstraint(
                condition=Q(admin_status__in=AdminStatus.values), name="admin_status_is_a_known_state"
            ),
            models.CheckConstraint(
                condition=Q(oper_status__in=OperStatus.values), name="oper_status_is_a_known_state"
            ),
            models.CheckConstraint(condition=Q(svc_mtu__range=(68, 65535)), name="svc_mtu_is_an_ip_mtu"),
            models.CheckConstraint(condition=Q(cir_bps__gt=0), name="cir_is_positive"),
            models.CheckConstraint(
                condition=Q(eir_bps__range=(0, 10**12)), name="eir_is_nothing_or_a_ports_rate"
            ),
            models.CheckConstraint(
                condition=Q(requested_cbs_bytes__isnull=True)
                | Q(requested_cbs_bytes__gte=F("frame"), requested_cbs_bytes__lte=MAX_BURST),
                name="cbs_holds_a_frame",
            ),
            models.CheckConstraint(
                condition=Q(requested_ebs_bytes__isnull=True)
                | Q(eir_bps__gt=0, requested_ebs_bytes__gte=F("frame"), requested_ebs_bytes__lte=MAX_BURST),
                name="ebs_holds_a_frame_and_has_a_rate",
            ),
            models.CheckConstraint(condition=Q(frame__range=(82, 65535)), name="frame_holds_the_packet"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="revisions_count_from_one"),
            models.CheckConstraint(
                condition=(Q(encapsulation="l2xc") & Q(family__isnull=True) & Q(vni__isnull=True))
                | (
                    Q(encapsulation__in=["vxlan", "geneve"])
                    & Q(family__in=[4, 6])
                    & Q(vni__range=(1, 2**24 - 1))
                )
                | (Q(encapsulation="gre") & Q(family__in=[4, 6]) & Q(vni__isnull=True)),
                name="transport_has_what_it_needs",
            ),
            models.CheckConstraint(
                condition=Q(gre_key__isnull=True)
                | (Q(encapsulation="gre") & Q(gre_key__range=(1, LAST_GRE_KEY))),
                name="only_gre_has_a_gre_key",
            ),
            models.CheckConstraint(
                condition=~Q(lifecycle__in=["active", "suspended"]) | Q(wanted_present=True),
                name="a_vll_in_service_is_wanted",
            ),
            models.CheckConstraint(
                condition=Q(decommission_at__isnull=True)
                | Q(lifecycle__in=[Lifecycle.PENDING_TERMINATE, Lifecycle.TERMINATED]),
                name="only_a_vll_on_its_way_out_cools_off",
            ),
        ]
        indexes = [
            models.Index(fields=["customer", "-created_at", "-id"], name="vll_by_customer"),
            models.Index(fields=["-created_at", "-id"], name="vll_by_age"),
            models.Index(fields=["vni"], condition=Q(vni__isnull=False), name="vll_by_vni"),
            models.Index(fields=["gre_key"], condition=Q(gre_key__isnull=False), name="vll_by_gre_key"),
            # For the SQL of `description__icontains`.
            GinIndex(OpClass(Upper("description"), name="gin_trgm_ops"), name="vll_by_part_of_description"),
            models.Index(
                fields=["decommission_at"],
                condition=Q(decommission_at__isnull=False, lifecycle=Lifecycle.PENDING_TERMINATE),
                name="vll_cooling_off",
            ),
            # For the overviews, which count lines and name a few of them.
            models.Index(fields=["customer"], condition=Q(lifecycle=Lifecycle.ACTIVE), name="vll_in_service"),
            models.Index(
                fields=["-created_at", "customer"],
                condition=Q(lifecycle=Lifecycle.ACTIVE) & ~Q(oper_status=OperStatus.UP),
                name="vll_not_up",
            ),
            models.Index(
                fields=["-created_at", "customer"],
                condition=Q(lifecycle=Lifecycle.ACTIVE, in_sync=False),
                name="vll_out_of_sync",
            ),
            models.Index(
                fields=["customer"], condition=Q(not_carried_since__isnull=False), name="vll_not_carried"
            ),
            models.Index(
                fields=["lifecycle"],
                condition=Q(link_loss_forwarding=True),
                name="vll_forwarding_link_loss",
            ),
            models.Index(
                fields=["-created_at"],
                condition=Q(wanted_present=False) & ~Q(lifecycle__in=sorted(TERMINAL_LIFECYCLES)),
                name="vll_on_its_way_out",
            ),
        ]

    def __str__(self) -> str:
        return self.description or str(self.id)

    @property
    def transport(self) -> str:
        """Return the allocated transport as in the API: ``l2xc``, ``vxlan4`` …"""
        return f"{self.encapsulation}{self.family or ''}"

    @property
    def profile(self) -> BandwidthProfile:
        """Return the profile, with its effective bursts, that routers with policing enforce at each end."""
        return bandwidth_profile(
            cir_bps=self.cir_bps,
            frame=self.frame,
            eir_bps=self.eir_bps,
            cbs_bytes=self.requested_cbs_bytes,
            ebs_bytes=self.requested_ebs_bytes,
        )

    @property
    def tunnel_packet(self) -> int:
        """Return the size of the largest IP packet in the line's tunnel, in bytes."""
        gre_key = self.gre_key is not None
        return self.frame + overhead(Transport(self.transport), MtuPolicy.EXACT, gre_key=gre_key)

    @property
    def policed(self) -> bool:
        """Return whether both directions are policed, each at its ingress. Prefetch ``ends``."""
        return all(end.policed for end in self.ends.all())


class VllEnd(models.Model):
    """The A or Z end point: a port, the frames selected on it, and its router's last answer about it."""

    class Status(models.TextChoices):
        """The answer of the router's agent for this end, or no answer yet."""

        UNANSWERED = "unasked"
        VERIFIED = "verified"
        # The router has built the end but does not connect it to the customer while the tunnel is tested.
        TESTING = "testing"
        PENDING = "pending"
        CONFLICT = "conflict"
        FAILED = "failed"
        REMOVED = "removed"

    # The index of one_end_per_side serves look-ups by this column.
    vll = models.ForeignKey(Vll, on_delete=models.CASCADE, related_name="ends", db_index=False)
    side = models.CharField(max_length=1)
    port = models.ForeignKey(Port, on_delete=models.PROTECT, related_name="vll_ends")
    tagging = models.CharField(max_length=10, choices=[(t.value, t.value) for t in Tagging])
    # Requested values. Null means "any": the portal chooses the outer VLAN.
    requested_outer_vlan = models.PositiveSmallIntegerField(null=True)
    # Allocated values.
    outer_vlan = models.PositiveSmallIntegerField(null=True)
    inner_vlan = models.PositiveSmallIntegerField(null=True)
    exact_match = models.BooleanField(default=True)
    tunnel_address = models.GenericIPAddressField(null=True)
    # The interfaces' tags before adoption, which the router restores after a release of the line; "": none.
    access_tag_before = models.CharField(max_length=63, blank=True, default="", db_default="")
    tunnel_tag_before = models.CharField(max_length=63, blank=True, default="", db_default="")

    # The newest answer, and its revision (0: no answer yet).
    status = models.CharField(max_length=10, choices=Status, default=Status.UNANSWERED)
    status_revision = models.PositiveIntegerField(default=0)
    status_at = models.DateTimeField(null=True)
    # The number of the agent's observation of VPP on which the answer is based; null: not reported.
    status_observation = models.BigIntegerField(null=True, db_column="status_look")
    reason = models.JSONField(null=True)
    # From the agent's observations; null: not reported.
    link_up = models.BooleanField(null=True)
    # link_since: since when link_up and shut_down have their values, by the portal's clock. shut_down: the
    # agent keeps the port shut because of the far end's link, so the port's own link state is unknown.
    link_since = models.DateTimeField(null=True)
    shut_down = models.BooleanField(db_column="held_down", default=False, db_default=False)
    reachable = models.BooleanField(null=True)
    observed_in_sync = models.BooleanField(null=True)
    # Whether the VPP read-back shows that ingress traffic is limited to the line's bandwidth profile.
    policed = models.BooleanField(default=False)
    # The state of the tunnel's path at this router, and since when by the agent's clock; "": not watched.
    path_state = models.CharField(
        max_length=10,
        choices=[(each.value, each.value) for each in PathState],
        blank=True,
        default="",
        db_default="",
    )
    path_since_ms = models.BigIntegerField(null=True)
    drift = models.JSONField(default=list)
    # The settings that someone else changes again after each repair.
    contested = models.JSONField(default=list, db_default=Value([], models.JSONField()))
    # The agent's findings if VPP drops frames with this end's VLAN; null without findings.
    vlan_loss = models.JSONField(null=True)
    # Whether this end or its line has changed since the last comparison with a report; set by triggers.
    changed_since_report = models.BooleanField(default=True, db_default=True)
    # A requested rebuild that no worker has begun (portal.vll.router_operations.actions).
    rebuild_requested_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["vll", "side"], name="one_end_per_side"),
            models.CheckConstraint(condition=Q(side__in=["a", "z"]), name="side_is_a_or_z"),
            models.CheckConstraint(
                condition=(
                    Q(tagging="untagged")
                    & Q(outer_vlan__isnull=True)
                    & Q(inner_vlan__isnull=True)
                    & Q(exact_match=True)
                )
                | (Q(tagging="dot1q") & Q(outer_vlan__range=(1, 4094)) & Q(inner_vlan__isnull=True))
                | (
                    Q(tagging__in=["qinq", "dot1ad"])
                    & Q(outer_vlan__range=(1, 4094))
                    & Q(inner_vlan__range=(1, 4094))
                ),
                name="tagging_has_the_vlans_it_needs",
            ),
            models.CheckConstraint(
                condition=Q(requested_outer_vlan__isnull=True) | Q(requested_outer_vlan__range=(1, 4094)),
                name="a_requested_vlan_is_one",
            ),
        ]
        indexes = [
            models.Index(fields=["outer_vlan"], name="vll_end_by_outer_vlan"),
            models.Index(
                fields=["inner_vlan"], condition=Q(inner_vlan__isnull=False), name="vll_end_by_inner_vlan"
            ),
            models.Index(fields=["port"], condition=Q(status="conflict"), name="vll_end_in_conflict"),
            models.Index(fields=["port"], condition=~Q(drift=[]), name="vll_end_drifted"),
            models.Index(fields=["vll"], condition=Q(shut_down=True), name="vll_end_held_down"),
            models.Index(fields=["port"], condition=~Q(contested=[]), name="vll_end_contested"),
            models.Index(
                fields=["port"], condition=Q(vlan_loss__isnull=False), name="vll_end_loses_its_vlan"
            ),
            models.Index(
                fields=["port"], condition=Q(changed_since_report=True), name="vll_end_changed_since_report"
            ),
            models.Index(
                fields=["rebuild_requested_at"],
                condition=Q(rebuild_requested_at__isnull=False),
                name="vll_end_rebuild_requested",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.side}"

    @property
    def is_as_ordered(self) -> bool:
        """Return whether the end was read back as ordered and no later observation differs."""
        return self.status == self.Status.VERIFIED and self.observed_in_sync is not False and not self.drift


class ForwardedLinkLoss(models.Model):
    """The end whose port is shut down, because the line's other end has lost its link.

    Each line that has ever forwarded a link loss has one row. One row per line ensures that the portal never
    shuts down both ends (portal.vll.operations.link_loss_forwarding).
    """

    vll = models.OneToOneField(
        Vll, on_delete=models.CASCADE, primary_key=True, related_name="forwarded_link_loss"
    )
    # "a" or "z"; "" when no end is shut down.
    shut_side = models.CharField(db_column="held", max_length=1, blank=True)
    turned_at = models.DateTimeField()
    # The number of shutdowns in a row. After an hour without a shutdown, it begins again at 1.
    times = models.PositiveIntegerField(default=0)
    # When the portal last sent this state to the end's router.
    sent_at = models.DateTimeField(db_column="asked_at")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(shut_side__in=["", "a", "z"]), name="an_end_held_down_is_a_or_z"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.shut_side or 'neither'}"

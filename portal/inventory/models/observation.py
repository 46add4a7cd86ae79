"""Observations of agents. Declared facts are in other models, and are never merged with them in storage."""

from datetime import datetime, timedelta
from typing import Any

from django.db import models

from portal.core.network.bandwidth_profile import Policing
from portal.core.network.encapsulations import Encapsulation
from portal.core.network.path_bfd import PathState
from portal.inventory.models.link import BackboneLink
from portal.inventory.models.router import Router

# A report is current for three report intervals and a margin: an agent reports every 10 s.
FRESH = timedelta(seconds=35)


class ObservedRouter(models.Model):
    """The last report of a router's agent."""

    # The columns that the intents of lines in service depend on. A router gets a new intent if one changes.
    IN_INTENTS = ("policing", "labels", "link_loss_forwarding")

    router = models.OneToOneField(Router, on_delete=models.CASCADE, related_name="observed")
    reported_at = models.DateTimeField()
    boot_id = models.UUIDField()
    sent_ms = models.BigIntegerField()
    agent_version = models.CharField(max_length=50)
    vpp_connected = models.BooleanField()
    # No VPP runs at all. A VPP that runs but is not connected may forward.
    vpp_absent = models.BooleanField(default=False, db_default=False)
    # VPP accepts connections but does not respond. Only a restart helps.
    vpp_hangs = models.BooleanField(default=False, db_default=False)
    # Since when the agent reports without a usable VPP; null while it has one.
    vpp_away_since = models.DateTimeField(null=True)
    vpp_version = models.CharField(max_length=100, blank=True)
    vpp_booted_at = models.DateTimeField(null=True)
    vpp_workers = models.PositiveIntegerField(null=True)
    # The plugins that VPP has loaded; null if the agent did not report them.
    vpp_plugins = models.JSONField(null=True)
    simulated = models.BooleanField(default=False)
    # The encapsulations that VPP supports; while VPP is away, the last known ones. Null before the first VPP.
    encapsulations = models.JSONField(null=True)
    # Where VPP can police; while VPP is away, the last known value.
    policing = models.CharField(
        max_length=12, choices=[(each.value, each.value) for each in Policing], default=Policing.NONE.value
    )
    # Files that the agent could not use: [{"file": "...", "why": "..."}].
    set_aside = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    # Whether VPP can send test frames; while VPP is away, the last known value.
    line_tests = models.BooleanField(default=False, db_default=False)
    # Whether VPP distinguishes GRE tunnels by keys; while VPP is away, the last known value.
    gre_keys = models.BooleanField(default=False, db_default=False)
    # Whether the agent creates tunnels in the requested table; otherwise it creates them in table 0.
    underlay_tables = models.BooleanField(default=False, db_default=False)
    # Whether VPP has multihop BFD, to watch paths; while VPP is away, the last known value.
    path_watch = models.BooleanField(default=False, db_default=False)
    # Whether the agent accepts probes and VPP can send test frames; while VPP is away, the last known value.
    probes = models.BooleanField(default=False, db_default=False)
    # Whether the agent's configuration file lets it take over foreign lines: "allowed" or "refused". "": the
    # agent supports neither adoption nor release.
    adoption = models.CharField(max_length=10, blank=True, default="", db_default="")
    # Whether the agent wants the labels of lines, for SNMP.
    labels = models.BooleanField(default=False, db_default=False)
    # Whether the agent supports freezes, and the freeze that it keeps (null: none).
    freezes = models.BooleanField(default=False, db_default=False)
    freeze = models.JSONField(null=True)
    # Whether the agent can shut a port down because of the far end's link.
    link_loss_forwarding = models.BooleanField(default=False, db_default=False)
    # SHA-256 (hex) of the certificate with which the agent last requested a renewal, and of its file of CAs.
    certificate_shown = models.CharField(max_length=64, blank=True, default="", db_default="")
    ca_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    generation_stored = models.BigIntegerField(db_column="generation_held", null=True)
    generation_applied = models.BigIntegerField(null=True)
    # Digests of the parts of the last report, by name: an unchanged part is not processed.
    digests = models.JSONField(default=dict, db_default={})
    # The router's lines may have become unknown since its last report: the next report updates all of them.
    found_silent = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return f"{self.router} at {self.reported_at:%H:%M:%S}"

    def is_current(self, *, reported_since: datetime) -> bool:
        """Return whether the last report arrived after ``reported_since``, from an agent with a VPP."""
        return bool(self.vpp_connected and self.reported_at >= reported_since)


class RouterSilence(models.Model):
    """A time without reports of a router: ``[since, until)``, from its last report to the next one.

    ``until`` null: the router is still silent. A silence counts only while the agent API ran
    (portal.telemetry.router_silences), because an outage of the agent API is no silence of a router.
    """

    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="silences", db_index=False)
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)
    # When VPP last gave a sign of life: frames that arrived from it, or counters of its agent.
    forwarded_at = models.DateTimeField(null=True)
    # The parts of the silence without a sign of life, if longer than LONGLINE_SILENCE_IS_DOWN_S: [[from, to],
    # ...].
    down_spans = models.JSONField(default=list)
    # Whether the silence is now in one of the ``down_spans``. The router's lines then count as down.
    counts_as_down = models.BooleanField(default=False)
    # The whole silence must be judged again from its beginning.
    judge_again = models.BooleanField(default=False)
    # The time until which the silence has been judged; null: not judged yet, or by an earlier release.
    judged_until = models.DateTimeField(null=True)
    # The 5-minute intervals in which VPP forwarded, as far as they have been read: [[from, to], ...].
    forwarded_spans = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField()), db_column="spoken_spans"
    )
    # The highest id of any status interval at the last judgement. Later intervals have higher ids.
    judged_interval = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["router"],
                condition=models.Q(until__isnull=True),
                name="a_router_is_silent_once_at_a_time",
            ),
            models.CheckConstraint(
                condition=models.Q(until__isnull=True) | models.Q(counts_as_down=False),
                name="a_router_that_is_heard_is_not_down",
            ),
        ]
        indexes = [models.Index(fields=["router", "since"], name="silence_by_router")]

    def __str__(self) -> str:
        return f"{self.router} since {self.since:%Y-%m-%d %H:%M:%S}"


class ObservedInterface(models.Model):
    """An interface as VPP shows it. ``ip_mtu`` in bytes; null if VPP reports none.

    ``speed_bps``: the speed of its link; null if VPP does not know it.
    """

    router = models.ForeignKey(
        Router, on_delete=models.CASCADE, related_name="observed_interfaces", db_index=False
    )
    name = models.CharField(max_length=63)
    admin_up = models.BooleanField()
    link_up = models.BooleanField()
    # Since when admin_up and link_up are unchanged; null: since the first report.
    link_since = models.DateTimeField(null=True)
    speed_bps = models.PositiveBigIntegerField(null=True)
    ip_mtu = models.PositiveIntegerField(null=True)
    # The Linux interface that Linux CP pairs with it.
    linux_cp = models.CharField(max_length=63, blank=True)
    # The port of a sub-interface.
    parent = models.CharField(max_length=63, blank=True, default="", db_default="")
    # The frames that a sub-interface takes from its port (portal.core.network.vlan_tags.Frames).
    # null: not reported.
    frames = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["router", "name"], name="an_interface_is_observed_once"),
        ]

    def __str__(self) -> str:
        return f"{self.router}:{self.name}"

    @classmethod
    def speeds_of_up_links(cls) -> models.QuerySet[Any, int | None]:
        """Return the speeds (bit/s) of the interfaces that are up and have a link."""
        return cls.objects.filter(admin_up=True, link_up=True).values_list("speed_bps", flat=True)


class ObservedLoad(models.Model):
    """The load of one side of a link over an agent's last interval (bit/s, as VPP counts).

    The load is separate from ObservedInterface, because a change of an ObservedInterface creates a new
    version of the topology.
    """

    link = models.ForeignKey(BackboneLink, on_delete=models.CASCADE, related_name="loads", db_index=False)
    side = models.CharField(max_length=1, choices=[("a", "A"), ("z", "Z")])
    at = models.DateTimeField()
    rx_bps = models.PositiveBigIntegerField()
    tx_bps = models.PositiveBigIntegerField()
    # The speed of the link, if VPP knows it.
    speed_bps = models.PositiveBigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["link", "side"], name="a_side_of_a_link_has_one_load"),
            models.CheckConstraint(condition=models.Q(side__in=["a", "z"]), name="a_load_is_of_a_or_z"),
            models.CheckConstraint(
                condition=models.Q(speed_bps__isnull=True) | models.Q(speed_bps__gt=0),
                name="a_speed_is_above_0",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.side} of {self.link}"


class TunnelAddress(models.Model):
    """An address of a loopback interface that is up. It may be the endpoint of a tunnel.

    ``table``: its FIB table.
    """

    router = models.ForeignKey(
        Router, on_delete=models.CASCADE, related_name="tunnel_addresses", db_index=False
    )
    address = models.GenericIPAddressField()
    table = models.PositiveBigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["router", "address", "table"], name="an_address_is_observed_once_in_a_table"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.address} on {self.router}"


class ObservedRoute(models.Model):
    """Whether the router has a route, other than a drop, to another router's tunnel address."""

    router = models.ForeignKey(
        Router, on_delete=models.CASCADE, related_name="observed_routes", db_index=False
    )
    address = models.GenericIPAddressField()
    reachable = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["router", "address"], name="a_route_is_observed_once"),
        ]

    def __str__(self) -> str:
        return f"{self.router} -> {self.address}"


class ObservedPath(models.Model):
    """A path that a router watches, from its tunnel address to another router's."""

    router = models.ForeignKey(
        Router, on_delete=models.CASCADE, related_name="observed_paths", db_index=False
    )
    local = models.GenericIPAddressField()
    remote = models.GenericIPAddressField()
    state = models.CharField(max_length=10, choices=[(each.value, each.value) for each in PathState])
    # By the agent's clock.
    since = models.DateTimeField()
    # The BFD session does not belong to the agent: it is read and never changed.
    foreign = models.BooleanField(default=False)
    # VPP's message, if it refused.
    detail = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["router", "local", "remote"], name="a_path_is_watched_once_by_a_router"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.router}: {self.local} -> {self.remote}"


class ObservedCircuit(models.Model):
    """A foreign cross-connect on a router, or a foreign tunnel without a cross-connect.

    ``near`` and ``far`` are interfaces; ``far`` is "" if there is none. ``sides`` is the report about both
    interfaces (portal.inventory.reported_observation.CircuitReport). ``key`` is the tunnel's VNI or GRE key;
    0 for none. For a circuit within the router, or between two tunnels, the columns of the tunnel are null or
    "".
    """

    router = models.ForeignKey(
        Router, on_delete=models.CASCADE, related_name="observed_circuits", db_index=False
    )
    near = models.CharField(max_length=63)
    far = models.CharField(max_length=63, blank=True)
    encapsulation = models.CharField(
        max_length=10, choices=[(each.value, each.value) for each in Encapsulation], blank=True
    )
    local = models.GenericIPAddressField(null=True)
    remote = models.GenericIPAddressField(null=True)
    key = models.PositiveBigIntegerField(null=True)
    sides = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["router", "near", "far"], name="a_circuit_is_observed_once"),
            models.CheckConstraint(
                condition=models.Q(
                    ~models.Q(encapsulation=""), local__isnull=False, remote__isnull=False, key__isnull=False
                )
                | models.Q(encapsulation="", local__isnull=True, remote__isnull=True, key__isnull=True),
                name="a_circuits_tunnel_is_whole",
            ),
        ]
        indexes = [
            models.Index(fields=["remote", "local", "encapsulation", "key"], name="circuit_by_far_end"),
            models.Index(fields=["key", "encapsulation"], name="circuit_by_key"),
        ]

    def __str__(self) -> str:
        return f"{self.router}: {self.near} - {self.far or 'nowhere'}"

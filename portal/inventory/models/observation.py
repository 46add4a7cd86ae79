"""The agents' observations. Declared facts live in their own models; the two are never merged in storage."""

from datetime import datetime
from typing import Any

from django.db import models

from portal.core.bandwidth_profile import Policing
from portal.core.encapsulations import Encapsulation
from portal.core.path_bfd import PathState
from portal.inventory.models.link import BackboneLink
from portal.inventory.models.router import Router


class ObservedRouter(models.Model):
    """The last report of a router's agent."""

    router = models.OneToOneField(Router, on_delete=models.CASCADE, related_name="observed")
    reported_at = models.DateTimeField()
    boot_id = models.UUIDField()
    sent_ms = models.BigIntegerField()
    agent_version = models.CharField(max_length=50)
    vpp_connected = models.BooleanField()
    # No VPP runs at all; one that is only not connected may forward.
    vpp_absent = models.BooleanField(default=False, db_default=False)
    # It takes connections and answers nothing: only a restart helps.
    vpp_hangs = models.BooleanField(default=False, db_default=False)
    # Since when the agent reports, but has no VPP to look at; null while it has.
    vpp_away_since = models.DateTimeField(null=True)
    vpp_version = models.CharField(max_length=100, blank=True)
    vpp_booted_at = models.DateTimeField(null=True)
    vpp_workers = models.PositiveIntegerField(null=True)
    # Those that it has loaded; null where the agent did not say.
    vpp_plugins = models.JSONField(null=True)
    simulated = models.BooleanField(default=False)
    # What its VPP can do; while VPP is away, what it could. Null until a VPP was seen.
    encapsulations = models.JSONField(null=True)
    # Where its VPP can police; while VPP is away, where it could.
    policing = models.CharField(
        max_length=12, choices=[(each.value, each.value) for each in Policing], default=Policing.NONE.value
    )
    # Files of the agent that it could not use: [{"file": "...", "why": "..."}].
    set_aside = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    # Whether it can send test frames; while VPP is away, whether it could.
    line_tests = models.BooleanField(default=False, db_default=False)
    # Whether it tells GRE tunnels apart by keys; while VPP is away, whether it did.
    gre_keys = models.BooleanField(default=False, db_default=False)
    # Whether its agent makes tunnels in the table that it is told; one that does not makes them in table 0.
    underlay_tables = models.BooleanField(default=False, db_default=False)
    # Whether it has multihop BFD, to watch paths; while VPP is away, whether it had.
    path_watch = models.BooleanField(default=False, db_default=False)
    # Whether its agent takes probes, and it can send test frames; while VPP is away, whether it could.
    probes = models.BooleanField(default=False, db_default=False)
    # Whether its agent takes over lines that others made, "refused" or "allowed" by its own file; "": it does
    # not know how to, nor how to let one go.
    adoption = models.CharField(max_length=10, blank=True, default="", db_default="")
    # Whether its agent wants to know what lines are called, for SNMP.
    labels = models.BooleanField(default=False, db_default=False)
    # Whether its agent can be told to change nothing; and the freeze that it keeps, null for none.
    freezes = models.BooleanField(default=False, db_default=False)
    freeze = models.JSONField(null=True)
    # Whether its agent can be told to keep a port down because of the far end's link.
    link_loss_forwarding = models.BooleanField(default=False, db_default=False)
    # SHA-256 (hex) of the certificate that its agent last asked for another with, and of its file of CAs.
    certificate_shown = models.CharField(max_length=64, blank=True, default="", db_default="")
    ca_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    generation_held = models.BigIntegerField(null=True)
    generation_applied = models.BigIntegerField(null=True)
    # Of the parts of its last report, by their names: a part that says the same again is not looked into.
    digests = models.JSONField(default=dict, db_default={})
    # Its lines may have been turned to unknown since its last report: the next one looks at all of them.
    found_silent = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return f"{self.router} at {self.reported_at:%H:%M:%S}"

    def tells_of_vpp(self, *, heard_since: datetime) -> bool:
        """Whether what it said is so still: it has been heard since then, and has a VPP to look at."""
        return bool(self.vpp_connected and self.reported_at >= heard_since)


class RouterSilence(models.Model):
    """From a router's last report until the next one: ``[since, until)``; null = it is still silent.

    Only while the portal listened (portal.telemetry.agent_api_uptime): its own absence is nobody's silence.
    """

    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="silences", db_index=False)
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)
    # When something last spoke for its VPP: frames that came from there, or what its agent counted.
    forwarded_at = models.DateTimeField(null=True)
    # The parts in which nothing did, for longer than LONGLINE_SILENCE_IS_DOWN_S: [[from, to], ...].
    down_spans = models.JSONField(default=list)
    # Whether that is so now: the lines that end there are down.
    counts_as_down = models.BooleanField(default=False)
    # The whole silence has to be judged from its beginning.
    judge_again = models.BooleanField(default=False)
    # Up to when it is judged; null: not yet, or only by a release that did not keep this.
    judged_until = models.DateTimeField(null=True)
    # The 5 minutes in which its VPP forwarded, as far as they have been read: [[from, to], ...].
    spoken_spans = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    # The highest id of an interval of its lines at the last judgement: what is above came later.
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
    """An interface as VPP shows it; ``ip_mtu`` in bytes, null where VPP names none.

    ``speed_bps`` of its link, null where VPP does not know it.
    """

    router = models.ForeignKey(
        Router, on_delete=models.CASCADE, related_name="observed_interfaces", db_index=False
    )
    name = models.CharField(max_length=63)
    admin_up = models.BooleanField()
    link_up = models.BooleanField()
    # Since when these two are so; null: they have been since it was first reported.
    link_since = models.DateTimeField(null=True)
    speed_bps = models.PositiveBigIntegerField(null=True)
    ip_mtu = models.PositiveIntegerField(null=True)
    # The Linux interface that Linux CP pairs it with.
    linux_cp = models.CharField(max_length=63, blank=True)
    # The port of a sub-interface.
    parent = models.CharField(max_length=63, blank=True, default="", db_default="")
    # The frames of its port that a sub-interface takes (portal.core.vlan_tags.Frames); null: not reported.
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

    Apart from the interfaces, whose changes make a new topology.
    """

    link = models.ForeignKey(BackboneLink, on_delete=models.CASCADE, related_name="loads", db_index=False)
    side = models.CharField(max_length=1, choices=[("a", "A"), ("z", "Z")])
    at = models.DateTimeField()
    rx_bps = models.PositiveBigIntegerField()
    tx_bps = models.PositiveBigIntegerField()
    # Of the link, where VPP knows it.
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
    """An address that is on the router, on an interface that is up, and may be a tunnel endpoint.

    ``table``: the FIB table in which it is.
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
    # Its BFD session is somebody else's: it is read and never changed.
    foreign = models.BooleanField(default=False)
    # VPP's words where it refused.
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
    """What somebody else cross-connected on a router, or a tunnel of somebody else's that leads nowhere.

    ``near`` and ``far`` are interfaces, ``far`` "" for none; ``sides`` is what was told of them
    (portal.inventory.reported_observation.CircuitReport). ``key`` is its tunnel's VNI or GRE key, 0 for none;
    of a circuit within the router, or between two tunnels, the tunnel's columns are null, and "".
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

import uuid
from datetime import datetime

from cryptography.x509 import Certificate, load_der_x509_certificate
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q


class Site(models.Model):
    """A point of presence. Latitude and longitude in degrees (WGS 84), north and east positive."""

    name = models.CharField(max_length=100, unique=True)
    latitude = models.DecimalField(max_digits=8, decimal_places=6, null=True, blank=True)
    longitude = models.DecimalField(max_digits=9, decimal_places=6, null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(latitude__isnull=True) | Q(latitude__range=(-90, 90)),
                name="a_latitude_is_between_the_poles",
            ),
            models.CheckConstraint(
                condition=Q(longitude__isnull=True) | Q(longitude__range=(-180, 180)),
                name="a_longitude_is_within_half_a_turn",
            ),
            models.CheckConstraint(
                condition=Q(latitude__isnull=True, longitude__isnull=True)
                | Q(latitude__isnull=False, longitude__isnull=False),
                name="a_site_has_both_coordinates_or_none",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def coordinates(self) -> tuple[float, float] | None:
        """Return latitude and longitude, or None if unknown."""
        if self.latitude is None or self.longitude is None:
            return None
        return float(self.latitude), float(self.longitude)


class Router(models.Model):
    """A VPP router. VLLs can end only on routers with an ``agent_url``. Tunnels can cross any router."""

    name = models.CharField(max_length=63, unique=True, validators=[RegexValidator(r"^[a-z0-9-]{1,63}\Z")])
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="routers")
    loopback4 = models.GenericIPAddressField(protocol="IPv4", null=True, blank=True, unique=True)
    loopback6 = models.GenericIPAddressField(protocol="IPv6", null=True, blank=True, unique=True)
    # VPP's FIB table for tunnels and loopbacks, with the same number for IPv4 and IPv6.
    underlay_table = models.PositiveBigIntegerField(default=0, db_default=0)
    agent_url = models.URLField(blank=True)
    cpu = models.CharField(max_length=50, blank=True)
    cores = models.PositiveSmallIntegerField(default=1)
    # The largest rate of test frames to send or receive, in packet/s; null: the deployment's setting.
    line_test_pps = models.PositiveIntegerField(null=True, blank=True)
    # The measured cost of encapsulations on this router, as the NOC stored it
    # (portal/allocation/packet_capacity.py); null: the shipped table applies.
    calibration = models.JSONField(null=True, blank=True)
    # The number of the newest intent; it only increases, under the row's lock.
    generation = models.BigIntegerField(default=0)
    # Since when the router accepts no new lines. Existing lines still converge.
    maintenance_since = models.DateTimeField(null=True, blank=True)
    # Since when paths avoid the router as transit. A drained router is under maintenance as well.
    drained_since = models.DateTimeField(null=True, blank=True)
    # Since when the portal sends the router no intent. Orders wait.
    locked_since = models.DateTimeField(db_column="held_since", null=True, blank=True)
    # Since when nothing is changed on the router. An operator must acknowledge the differences
    # (RouterFreeze).
    frozen_since = models.DateTimeField(null=True, blank=True)
    # Since when removals do not wait for the router's confirmation. A dead router is also under maintenance.
    dead_since = models.DateTimeField(null=True, blank=True)
    # Since when the router is kept for the record only.
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(generation__gte=0), name="generation_is_not_negative"),
            models.CheckConstraint(condition=Q(cores__gte=1), name="a_router_has_a_core"),
            # VPP uses 2^32 - 1 for no table.
            models.CheckConstraint(
                condition=Q(underlay_table__range=(0, 2**32 - 2)), name="an_underlay_table_is_one_of_vpps"
            ),
            models.CheckConstraint(
                condition=Q(line_test_pps__isnull=True) | Q(line_test_pps__range=(100, 10**6)),
                name="a_burst_of_test_frames_takes_a_second_at_most",
            ),
            models.CheckConstraint(
                condition=Q(calibration__isnull=True)
                | Q(calibration__has_keys=["clock_hz", "clocks"], calibration__clocks__has_key="l2xc"),
                name="a_calibration_has_clocks_and_their_rate",
            ),
            models.CheckConstraint(
                condition=Q(name__regex=r"^[a-z0-9-]{1,63}$"), name="router_name_fits_a_certificate_name"
            ),
            models.UniqueConstraint(
                fields=["agent_url"], condition=~Q(agent_url=""), name="an_agent_serves_one_router"
            ),
            models.CheckConstraint(
                condition=Q(drained_since__isnull=True) | Q(maintenance_since__isnull=False),
                name="a_drained_router_is_under_maintenance",
            ),
            models.CheckConstraint(
                condition=Q(dead_since__isnull=True) | Q(maintenance_since__isnull=False),
                name="a_dead_router_is_under_maintenance",
            ),
            models.CheckConstraint(
                condition=Q(retired_at__isnull=True) | Q(agent_url=""), name="a_retired_router_has_no_agent"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_agent(self) -> bool:
        return bool(self.agent_url)

    @property
    def forwarding_cores(self) -> int:
        """Return the number of forwarding cores: the declared number, or the observed one if that is smaller.

        Without workers, the main thread of VPP forwards. Read the router with ``select_related("observed")``.
        """
        observed = getattr(self, "observed", None)
        workers: int | None = None if observed is None else observed.vpp_workers
        return self.cores if workers is None else min(self.cores, max(1, workers))

    def loopback(self, family: int) -> str | None:
        """Return the tunnel endpoint of this address family (4 or 6), or None."""
        return self.loopback4 if family == 4 else self.loopback6


class RouterEnrolment(models.Model):
    """A one-time offer of a certificate. Only the peppered HMAC of its token is stored."""

    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="enrolments")
    digest = models.BinaryField(max_length=32, unique=True)
    offered_by = models.CharField(max_length=150)
    # The API token that made the offer; null: made on a page.
    made_with = models.ForeignKey(
        "accounts.ApiToken", on_delete=models.SET_NULL, null=True, blank=True, related_name="enrolments"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["router"], condition=Q(used_at__isnull=True), name="a_router_has_one_open_enrolment"
            ),
            models.CheckConstraint(
                condition=Q(used_at__isnull=True) | Q(used_at__lt=F("expires_at")),
                name="an_enrolment_is_used_before_it_expires",
            ),
        ]

    def __str__(self) -> str:
        return f"enrolment of {self.router} until {self.expires_at:%Y-%m-%d %H:%M}"


class RouterCertificate(models.Model):
    """A certificate of a router's agent. The portal looks it up for each report, so that a revocation takes
    effect immediately.
    """

    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="certificates")
    serial = models.CharField(max_length=40, unique=True)
    fingerprint = models.CharField(max_length=64, unique=True)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    # The enrolment that issued it; null for the command line or a renewal. An enrolment issues one
    # certificate.
    enrolment = models.OneToOneField(RouterEnrolment, on_delete=models.PROTECT, null=True)
    # The certificate itself, for an agent that crashed before it stored its certificate.
    der = models.BinaryField(null=True)

    def __str__(self) -> str:
        return f"{self.router} {self.serial}"

    def parsed(self) -> Certificate | None:
        """Return the certificate; None if it was registered before certificates were stored."""
        return None if self.der is None else load_der_x509_certificate(bytes(self.der))


# In characters. For a freeze that begins on the router, the agent accepts the same number of bytes.
LONGEST_REASON = 200


class RouterFreeze(models.Model):
    """A period in which nothing is changed on a router, until an operator acknowledges the differences.

    If an operator began the freeze on the router, the agent chose its id, and ``by`` is "".
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="freezes")
    reason = models.CharField(max_length=LONGEST_REASON)
    by = models.CharField(max_length=150, blank=True)
    since = models.DateTimeField()
    until = models.DateTimeField()
    # When the agent first reported that it keeps the freeze; null: not yet.
    kept_since = models.DateTimeField(null=True, blank=True)
    # When a user requested an early end of a freeze of the portal.
    end_requested_at = models.DateTimeField(null=True, blank=True, db_column="end_asked_at")
    # When the agent reported the end of the freeze, or no longer reported the freeze. From then on, an
    # operator can check the differences.
    ended_at = models.DateTimeField(null=True, blank=True)
    # When an operator acknowledged the differences, or when the freeze was closed without an acknowledgement.
    # In the second case, ``acknowledged_by`` is "".
    closed_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, db_column="looked_by")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["router"],
                condition=Q(closed_at__isnull=True) & ~Q(by=""),
                name="a_router_is_frozen_once_at_a_time",
            ),
            models.CheckConstraint(condition=Q(until__gt=F("since")), name="a_freeze_ends_after_it_begins"),
        ]

    def __str__(self) -> str:
        return f"{self.router} since {self.since:%Y-%m-%d %H:%M}"

    def is_ending(self, now: datetime) -> bool:
        """Return whether the freeze has ended, or ends as soon as its agent learns of the end."""
        return self.ended_at is not None or self.end_requested_at is not None or self.until <= now

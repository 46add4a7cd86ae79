"""Refusals of inventory writes: types with facts, worded by ``portal.inventory.error_messages``."""

from portal.core.errors import Conflict, DomainError


class InUse(Conflict):
    """Something else needs it. ``used_by``: the names of the first few; ``count``: how many there are."""

    what: str
    name: str
    used_by: list[str]
    count: int


class LinkInService(Conflict):
    """A link that traffic may run over is taken out of service before it is removed."""

    link: str
    field: str = "in_service"


class Retired(Conflict):
    """It is kept for the record only; nothing new can belong to it."""

    what: str
    name: str
    field: str = ""


class ValueTaken(Conflict):
    """A name, address or agent URL that must be unique belongs to another one."""

    what: str
    value: str
    field: str


class InterfaceTaken(Conflict):
    """An interface is one side of one link, or one port. ``used_by``: what it is now."""

    router: str
    interface: str
    used_by: str
    field: str


class CalibrationUnreadable(DomainError):
    """It is not what ``longline-agent calibrate -json`` prints. ``detail``: where, and why."""

    detail: str
    field: str = "calibration"


class CalibrationOfAnother(DomainError):
    """It was measured on another router, ``measured``."""

    router: str
    measured: str
    field: str = "calibration"


class LinkWithinRouter(DomainError):
    """Both sides of the link are on one router."""

    router: str
    field: str = "z_router"


class BookableBelowBooked(Conflict):
    """Less than what is booked on the port already. Rates in bit/s."""

    port: str
    bookable_bps: int
    booked_bps: int
    field: str = "bookable_bps"


class BookableTwice(DomainError):
    """A rate to book and a part of the speed that contradict each other. Rates in bit/s."""

    bookable_bps: int
    oversubscription_percent: int
    speed_bps: int
    field: str = "bookable_bps"


class OutOfRange(DomainError):
    """A number outside what the inventory can mean by it."""

    value: int | float
    minimum: int
    maximum: int
    field: str


class CoordinateMissing(DomainError):
    """A site has a latitude and a longitude, or neither."""

    field: str


class NotAnInterfaceName(DomainError):
    """VPP's interface names are 1 to 63 visible ASCII characters."""

    value: str
    field: str


class EnrolmentRefused(DomainError):
    """The token was never offered, or a newer one has taken its place.

    Its kinds below are told only to who holds a token that the NOC did offer.
    """

    field: str = "token"


class EnrolmentUsed(EnrolmentRefused):
    """The token has made its certificate, for another key than the one that asks."""

    router: str


class EnrolmentExpired(EnrolmentRefused):
    """The token is too old, or its router has been retired since."""

    router: str


class EnrolmentOfAnother(EnrolmentRefused):
    """The token is for ``router``; an agent that calls itself ``asking`` shows it. It stays good."""

    router: str
    asking: str


class BadCertificateRequest(DomainError):
    """No PKCS #10 request (RFC 2986) that proves possession of an ECDSA P-256 or P-384 key."""

    field: str = "csr_pem"


class NoAuthorityHere(Conflict):
    """The CA's key is kept elsewhere: certificates are made there, by the command line."""

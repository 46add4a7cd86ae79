"""Errors of inventory writes, with their facts. Their messages are in ``portal.inventory.error_messages``."""

from portal.core.errors import Conflict, DomainError


class InUse(Conflict):
    """Other objects use the object. ``used_by``: the names of the first few of these objects. ``count``: the
    number of all.
    """

    what: str
    name: str
    used_by: list[str]
    count: int


class LinkInService(Conflict):
    """A link that may carry traffic must be taken out of service before it is removed."""

    link: str
    field: str = "in_service"


class Retired(Conflict):
    """The object is retired: it is kept for the record only, and nothing can be changed or added."""

    what: str
    name: str
    field: str = ""


class ValueTaken(Conflict):
    """A name, address or agent URL that must be unique belongs to another object."""

    what: str
    value: str
    field: str


class InterfaceTaken(Conflict):
    """The interface is already a port or a side of a link, and can have only one use. ``used_by``: the
    present use.
    """

    router: str
    interface: str
    used_by: str
    field: str


class CalibrationUnreadable(DomainError):
    """The text is not the output of ``longline-agent calibrate -json``.

    ``detail``: the place and the reason of the error.
    """

    detail: str
    field: str = "calibration"


class CalibrationOfAnother(DomainError):
    """The calibration was measured on another router, ``measured``."""

    router: str
    measured: str
    field: str = "calibration"


class LinkWithinRouter(DomainError):
    """Both sides of the link are on one router."""

    router: str
    field: str = "z_router"


class BookableBelowBooked(Conflict):
    """The rate is less than the port's bookings. Rates in bit/s."""

    port: str
    bookable_bps: int
    booked_bps: int
    field: str = "bookable_bps"


class BookableTwice(DomainError):
    """The bookable rate and the percentage of the port's speed contradict each other. Rates in bit/s."""

    bookable_bps: int
    oversubscription_percent: int
    speed_bps: int
    field: str = "bookable_bps"


class OutOfRange(DomainError):
    """A number outside the permitted range."""

    value: int | float
    minimum: int
    maximum: int
    field: str


class CoordinateMissing(DomainError):
    """A site has both a latitude and a longitude, or neither."""

    field: str


class NotAnInterfaceName(DomainError):
    """VPP's interface names are 1 to 63 visible ASCII characters."""

    value: str
    field: str


class EnrolmentRefused(DomainError):
    """The token was never offered, or a newer one has replaced it.

    The subclasses are raised only for callers with a token that the NOC has offered.
    """

    field: str = "token"


class EnrolmentUsed(EnrolmentRefused):
    """A certificate was already issued with the token, for a key other than the key in the request."""

    router: str


class EnrolmentExpired(EnrolmentRefused):
    """The token has expired, its router is retired, or the user who offered it is no longer NOC staff."""

    router: str


class EnrolmentOfAnother(EnrolmentRefused):
    """The token is for ``router``, but the agent of router ``asking`` used it. The token stays valid."""

    router: str
    asking: str


class BadCertificateRequest(DomainError):
    """The request is not a PKCS #10 request (RFC 2986) that proves possession of an ECDSA P-256
    or P-384 key.
    """

    field: str = "csr_pem"


class NoAuthorityHere(Conflict):
    """The CA's key is stored elsewhere: the command line issues certificates there."""

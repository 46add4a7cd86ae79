"""Errors of inventory writes, with their facts."""

from django.utils.translation import gettext_lazy as _

from portal.core.errors import Conflict, DomainError

# By the values of ``what``.
_KINDS = {
    "customer": _("customer"),
    "link": _("link"),
    "port": _("port"),
    "router": _("router"),
    "site": _("site"),
}


class InUse(Conflict):
    """Other objects use the object. ``used_by``: the first names. ``count``: the number of all of them."""

    what: str
    name: str
    used_by: list[str]
    count: int

    @property
    def sentence(self) -> str:
        users = ", ".join(self.used_by)
        if self.count > len(self.used_by):
            users = _("{users} and {more} more").format(users=users, more=self.count - len(self.used_by))
        return self.filled(_("{name} is in use by {users}. Remove these first."), users=users)


class LinkInService(Conflict):
    """A link that may carry traffic must be taken out of service before it is removed."""

    text = _("{link} is in service. Take it out of service, then remove it.")
    link: str
    field: str = "in_service"


class Retired(Conflict):
    """The object is retired: it is kept for the record only, and nothing can be changed or added."""

    what: str
    name: str
    field: str = ""

    @property
    def sentence(self) -> str:
        text = _("The {what} {name} is retired and kept for the record only. Choose another one.")
        return self.filled(text, what=_KINDS[self.what])


class ValueTaken(Conflict):
    """A name, address or agent URL that must be unique belongs to another object."""

    what: str
    value: str
    field: str

    @property
    def sentence(self) -> str:
        text = _("{value} already belongs to another {what}. Choose another one.")
        return self.filled(text, what=_KINDS[self.what])


class InterfaceTaken(Conflict):
    """``used_by`` already uses the interface as a port or a side of a link. It can have only one use."""

    text = _("{interface} of {router} is in use by {used_by}. An interface has one use: choose another one.")
    router: str
    interface: str
    used_by: str
    field: str


class CalibrationUnreadable(DomainError):
    """The text is not the output of ``longline-agent calibrate -json``.

    ``detail``: the place and the reason of the error.
    """

    text = _("This is not the output of longline-agent calibrate -json: {detail}. Copy the complete output.")
    detail: str
    field: str = "calibration"


class CalibrationOfAnother(DomainError):
    """The calibration was measured on another router, ``measured``."""

    text = _("This was measured on {measured} and cannot be used for {router}. Calibrate {router} itself.")
    router: str
    measured: str
    field: str = "calibration"


class LinkWithinRouter(DomainError):
    """Both sides of the link are on one router."""

    text = _("Both sides are on {router}. A backbone link joins two different routers.")
    router: str
    field: str = "z_router"


class BookableBelowBooked(Conflict):
    """The rate is less than the port's bookings. Rates in bit/s."""

    port: str
    bookable_bps: int
    booked_bps: int
    field: str = "bookable_bps"

    @property
    def sentence(self) -> str:
        text = _("{booked} is booked on {port}, more than {bookable}. Remove lines from it first.")
        return self.filled(text)


class BookableTwice(DomainError):
    """The bookable rate and the percentage of the port's speed contradict each other. Rates in bit/s."""

    bookable_bps: int
    oversubscription_percent: int
    speed_bps: int
    field: str = "bookable_bps"

    @property
    def sentence(self) -> str:
        text = _("{percent} % of {speed} is not {bookable}. Give one of the two and leave the other out.")
        return self.filled(text, percent=self.oversubscription_percent)


class OutOfRange(DomainError):
    """A number outside the permitted range."""

    text = _("{value} is not between {minimum} and {maximum}.")
    value: int | float
    minimum: int
    maximum: int
    field: str


class CoordinateMissing(DomainError):
    """A site has both a latitude and a longitude, or neither."""

    text = _("A site has a latitude and a longitude, or neither. Enter both, or leave both empty.")
    field: str


class NotAnInterfaceName(DomainError):
    """VPP's interface names are 1 to 63 visible ASCII characters."""

    text = _("This is not an interface name. Enter it as VPP shows it: 1 to 63 visible ASCII characters.")
    value: str
    field: str


class EnrolmentRefused(DomainError):
    """The token was never offered, or a newer one has replaced it.

    The subclasses are raised only for callers with a token that the NOC has offered.
    """

    text = _("This is not an enrolment token, or a newer one has replaced it. Ask the NOC for a new one.")
    field: str = "token"


class EnrolmentUsed(EnrolmentRefused):
    """A certificate was already issued with the token, for a key other than the key in the request."""

    text = _(
        "This enrolment token for {router} has already been used with another key. Ask the NOC for a "
        "new one; if it was not you who used it, have {router}'s certificates revoked."
    )
    router: str


class EnrolmentExpired(EnrolmentRefused):
    """The token has expired, its router is retired, or the user who offered it is no longer NOC staff."""

    text = _(
        "This enrolment token for {router} has expired, or {router} is retired. Ask the NOC for a new one."
    )
    router: str


class EnrolmentOfAnother(EnrolmentRefused):
    """The token is for ``router``, but the agent of router ``asking`` used it. The token stays valid."""

    text = _(
        "This enrolment token is for {router}, but {asking} presented it. Ask the NOC for a token for "
        "{asking}."
    )
    router: str
    asking: str


class BadCertificateRequest(DomainError):
    """The request is no PKCS #10 request (RFC 2986) that proves possession of an ECDSA P-256 or P-384 key."""

    text = _(
        "This is not a certificate request. Send PKCS #10 in PEM, signed with an ECDSA P-256 or P-384 key."
    )
    field: str = "csr_pem"


class NoAuthorityHere(Conflict):
    """The CA's key is stored elsewhere: the command line issues certificates there."""

    text = _(
        "The portal does not have the key of its CA. Issue the certificate where the key is (manage.py pki)."
    )

"""Error messages about the inventory, with the facts of the errors."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.errors import TEXTS, wording
from portal.core.units import rate_text
from portal.inventory import errors

TEXTS |= {
    errors.LinkInService: gettext_noop("{link} is in service. Take it out of service, then remove it."),
    errors.InterfaceTaken: gettext_noop(
        "{interface} of {router} is in use by {used_by}. An interface has one use: choose another one."
    ),
    errors.CalibrationUnreadable: gettext_noop(
        "This is not the output of longline-agent calibrate -json: {detail}. Copy the complete output."
    ),
    errors.CalibrationOfAnother: gettext_noop(
        "This was measured on {measured} and cannot be used for {router}. Calibrate {router} itself."
    ),
    errors.LinkWithinRouter: gettext_noop(
        "Both sides are on {router}. A backbone link joins two different routers."
    ),
    errors.OutOfRange: gettext_noop("{value} is not between {minimum} and {maximum}."),
    errors.CoordinateMissing: gettext_noop(
        "A site has a latitude and a longitude, or neither. Enter both, or leave both empty."
    ),
    errors.NotAnInterfaceName: gettext_noop(
        "This is not an interface name. Enter it as VPP shows it: 1 to 63 visible ASCII characters."
    ),
    errors.EnrolmentRefused: gettext_noop(
        "This is not an enrolment token, or a newer one has replaced it. Ask the NOC for a new one."
    ),
    errors.EnrolmentUsed: gettext_noop(
        "This enrolment token for {router} has already been used with another key. Ask the NOC for a "
        "new one; if it was not you who used it, have {router}'s certificates revoked."
    ),
    errors.EnrolmentExpired: gettext_noop(
        "This enrolment token for {router} has expired, or {router} is retired. Ask the NOC for a new one."
    ),
    errors.EnrolmentOfAnother: gettext_noop(
        "This enrolment token is for {router}, but {asking} presented it. Ask the NOC for a token for "
        "{asking}."
    ),
    errors.BadCertificateRequest: gettext_noop(
        "This is not a certificate request. Send PKCS #10 in PEM, signed with an ECDSA P-256 or P-384 key."
    ),
    errors.NoAuthorityHere: gettext_noop(
        "The portal does not have the key of its CA. Issue the certificate where the key is (manage.py pki)."
    ),
}


# By the values of ``what``.
_KINDS = {
    "customer": gettext_noop("customer"),
    "link": gettext_noop("link"),
    "port": gettext_noop("port"),
    "router": gettext_noop("router"),
    "site": gettext_noop("site"),
}


@wording.register
def _retired(error: errors.Retired) -> str:
    return _("The {what} {name} is retired and kept for the record only. Choose another one.").format(
        what=_(_KINDS[error.what]), name=error.name
    )


@wording.register
def _value_taken(error: errors.ValueTaken) -> str:
    return _("{value} already belongs to another {what}. Choose another one.").format(
        value=error.value, what=_(_KINDS[error.what])
    )


@wording.register
def _bookable_below_booked(error: errors.BookableBelowBooked) -> str:
    return _("{booked} is booked on {port}, more than {bookable}. Remove lines from it first.").format(
        booked=rate_text(error.booked_bps), port=error.port, bookable=rate_text(error.bookable_bps)
    )


@wording.register
def _bookable_twice(error: errors.BookableTwice) -> str:
    return _("{percent} % of {speed} is not {bookable}. Give one of the two and leave the other out.").format(
        percent=error.oversubscription_percent,
        speed=rate_text(error.speed_bps),
        bookable=rate_text(error.bookable_bps),
    )


@wording.register
def _in_use(error: errors.InUse) -> str:
    users = ", ".join(error.used_by)
    if error.count > len(error.used_by):
        users = _("{users} and {more} more").format(users=users, more=error.count - len(error.used_by))
    return _("{name} is in use by {users}. Remove these first.").format(name=error.name, users=users)

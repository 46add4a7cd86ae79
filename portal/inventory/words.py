"""The words for refusals about the inventory, with the errors' facts in them."""

from django.utils.translation import gettext_noop

from portal.core.errors import DomainError
from portal.inventory import errors

TEXTS: dict[type[DomainError], str] = {
    errors.LinkInService: gettext_noop("{link} is in service. Take it out of service, then remove it."),
    errors.Retired: gettext_noop(
        "The {what} {name} is retired and kept for the record only. Choose another one."
    ),
    errors.ValueTaken: gettext_noop("{value} belongs to another {what} already. Choose another one."),
    errors.InterfaceTaken: gettext_noop(
        "{interface} of {router} is in use by {used_by}. An interface has one use: choose another one."
    ),
    errors.LinkWithinRouter: gettext_noop(
        "Both sides are on {router}. A backbone link joins two different routers."
    ),
    errors.OutOfRange: gettext_noop("{value} is outside {minimum} to {maximum}."),
    errors.NotAnInterfaceName: gettext_noop(
        "This is no interface name. Write it as VPP shows it: 1 to 63 visible ASCII characters."
    ),
    errors.EnrolmentRefused: gettext_noop(
        "This enrolment token is no good: it was used, is too old, or never was one. Ask the NOC for another."
    ),
    errors.BadCertificateRequest: gettext_noop(
        "This is no certificate request. Send a PEM of PKCS #10 that an ECDSA P-256 or P-384 key has signed."
    ),
    errors.NoAuthorityHere: gettext_noop(
        "The portal does not hold the key of its CA. Issue the certificate where the key is (manage.py pki)."
    ),
}

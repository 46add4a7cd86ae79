"""Sentences about why a webhook is disabled."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.notifications.models import Webhook

_DISABLED: dict[str, str] = {
    Webhook.Disabled.BY_HAND: gettext_noop("Disabled by hand"),
    Webhook.Disabled.GONE: gettext_noop("Disabled: its receiver answered that it is gone permanently"),
    Webhook.Disabled.FAILING: gettext_noop("Disabled: nothing could be delivered for days"),
}


def why_disabled(because: str) -> str:
    """Return the sentence for a stored reason ``because``.

    The sentence contains the reason itself if this release does not know it.
    """
    if because not in _DISABLED:
        return _("Disabled: {reason}").format(reason=because)
    return _(_DISABLED[because])

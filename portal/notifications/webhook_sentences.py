"""Why nothing is sent to a webhook, in words."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.notifications.models import Webhook

_DISABLED = {
    Webhook.Disabled.BY_HAND: gettext_noop("Disabled by hand"),
    Webhook.Disabled.GONE: gettext_noop("Disabled: its receiver answered that it is gone for good"),
    Webhook.Disabled.FAILING: gettext_noop("Disabled: nothing could be delivered for days"),
}


def why_disabled(because: str) -> str:
    """``because``: a value of Webhook.Disabled, of one that is disabled."""
    return _(_DISABLED[Webhook.Disabled(because)])

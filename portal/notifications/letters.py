"""What a mail says: the folder below templates/mail, and the values in it, read when it is sent."""

from typing import Any

from django.urls import reverse

from portal.accounts import mail
from portal.accounts.password_reset import ACCOUNT_OPENED, PASSWORD_RESET_ASKED, password_path
from portal.notifications.models import Mail, Webhook
from portal.notifications.monthly import report
from portal.vll.models import Vll

Letter = tuple[str, dict[str, Any]]
# The templates of what is about the reader's own account.
_ACCOUNT = {PASSWORD_RESET_ASKED: "password_reset", ACCOUNT_OPENED: "account_opened"}


def letter(found: Mail) -> Letter | None:
    """Template and values of a mail, or None when what it is about is gone."""
    if found.kind in _ACCOUNT:
        link = mail.link(password_path(found.user))
        return _ACCOUNT[found.kind], {"username": found.user.username, "link": link}
    settings_page = mail.link(reverse("web:notifications"))
    if found.month is not None:
        said = report(found)
    elif found.kind == "webhook.disabled":
        said = _webhook(found)
    else:
        said = _line(found)
    if said is None:
        return None
    template, values = said
    return template, {"settings": settings_page, "group": found.group, **values}


def _line(found: Mail) -> Letter | None:
    """About a line or an order: ``what`` is the part of the kind that the sentence goes by."""
    line = Vll.objects.select_related("customer").filter(pk=found.vll_id).first()
    if line is None:
        return None
    subject, _, what = found.kind.partition(".")
    failure = found.data.get("failure") or {}
    values = {
        "what": what,
        "line": str(line),
        "customer": line.customer.name,
        "link": mail.link(reverse("web:vll", args=[line.pk])),
        "action": found.data.get("action", ""),
        "reason": str(failure.get("message") or failure.get("code") or ""),
    }
    return ("order" if subject == "order" else "line", values)


def _webhook(found: Mail) -> Letter | None:
    webhook = Webhook.objects.filter(pk=found.data["webhook"]).first()
    if webhook is None:
        return None
    return "webhook_disabled", {
        "webhook": str(webhook),
        "address": webhook.url,
        "because": found.data["because"],
        "link": mail.link(reverse("web:webhook", args=[webhook.pk])),
    }

"""Webhooks: the form, the pages, and template tags for deliveries."""

from functools import partial
from typing import Any, cast
from uuid import UUID

from django import forms, template
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.core import clock
from portal.inventory.queries import Text
from portal.notifications import webhook_operations
from portal.notifications.event_catalogue import CHOICES, CUSTOMER_CHOICES
from portal.notifications.models import Delivery, Webhook
from portal.notifications.public_address_check import LONGEST_URL
from portal.notifications.webhook_operations import (
    delivery_redeliver,
    webhook_change,
    webhook_create,
    webhook_disable,
    webhook_enable,
    webhook_remove,
    webhook_rotate,
    webhook_test,
    why_disabled,
)
from portal.web.fields.base import VersionedForm, save
from portal.web.fields.suggestions import AutocompleteField
from portal.web.page.badges import badge_markup
from portal.web.page.base import SignedInRequest, requires, result_message
from portal.web.page.list_filters import in_order, newest_first


def _described(choices: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(name, format_lazy("{} – {}", name, about)) for name, about in choices]


class WebhookForm(VersionedForm):
    """The form to change a webhook. Its ``cleaned_data`` are arguments of ``webhook_change``."""

    url = forms.CharField(
        label=_("Address"),
        max_length=LONGEST_URL,
        help_text=_("Such as https://hooks.example.net/longline; every event is sent there."),
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}),
    )
    description = forms.CharField(label=_("What is it for?"), max_length=100, required=False)
    types = forms.MultipleChoiceField(
        label=_("Events"),
        required=False,
        choices=_described(CHOICES),
        widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"}),
    )


class CustomerWebhookForm(WebhookForm):
    """The form to change a customer's webhook. It does not offer events that only the NOC's webhooks get."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer_customer_events(self)


class WebhookAddForm(WebhookForm):
    """The form to add a webhook. It has a field for the customer.

    The field is hidden if the user manages only one customer.
    """

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._managed: list[Customer] = []
        if user.is_noc_admin:
            field: forms.Field = AutocompleteField(
                label=_("Customer"),
                of="customers",
                required=False,
                help_text=_(
                    "Its name or id; empty for the NOC's own, which receive the events of every customer."
                ),
            )
        else:
            _offer_customer_events(self)
            self._managed = list(permissions.managed_customers(user).order_by("name"))
            field = forms.TypedChoiceField(
                label=_("Customer"),
                choices=[(each.pk, each.name) for each in self._managed],
                coerce=lambda pk: next(each for each in self._managed if each.pk == int(pk)),
            )
            if len(self._managed) == 1:
                field.widget, field.initial = forms.HiddenInput(), self._managed[0].pk
        field.widget.attrs.setdefault("class", "form-select" if self._managed else "form-control")
        self.fields = {"customer": field, **self.fields}


def _offer_customer_events(form: WebhookForm) -> None:
    cast(forms.MultipleChoiceField, form.fields["types"]).choices = _described(CUSTOMER_CHOICES)


register = template.Library()

_STATES: dict[str, tuple[Text, str]] = {
    Delivery.State.PENDING: (_("Pending"), "info"),
    Delivery.State.DELIVERED: (_("Delivered"), "success"),
    Delivery.State.FAILED: (_("Failed"), "danger"),
}
_ERRORS = {
    Delivery.Error.STATUS: _("The receiver refused it"),
    Delivery.Error.REDIRECT: _("The receiver sent a redirect, which is not followed"),
    Delivery.Error.GONE: _("The receiver is gone permanently"),
    Delivery.Error.TIMEOUT: _("No complete answer in time"),
    Delivery.Error.UNREACHABLE: _("No connection"),
    Delivery.Error.NO_SUCH_HOST: _("The host name does not resolve"),
    Delivery.Error.NOT_PUBLIC: _("The host name resolves to an address that is not public"),
    Delivery.Error.PORT: _("The port is not allowed"),
    Delivery.Error.PLAIN_HTTP: _("Only https is allowed"),
    Delivery.Error.TLS: _("No trusted TLS certificate for this host name"),
    Delivery.Error.NOT_HTTP: _("The answer is not HTTP, or is too long"),
}


@register.simple_tag
def delivery_badge(delivery: Delivery) -> SafeString:
    return badge_markup(*_STATES.get(delivery.state, (delivery.state, "muted")))


@register.simple_tag
def webhook_badge(webhook: Webhook) -> SafeString:
    if webhook.disabled_at is not None:
        return badge_markup(why_disabled(webhook.disabled_because), "danger")
    if webhook.failing_since is not None:
        return badge_markup(gettext("Failing"), "warning")
    return badge_markup(gettext("Enabled"), "success")


@register.filter
def outcome(delivery: Delivery) -> str:
    """Return the result of the last attempt: the HTTP status, such as ``HTTP 200``, and the error if there
    was one.

    Return "–" before the first attempt.
    """
    if not delivery.log:
        return "–"
    last: dict[str, Any] = delivery.log[-1]
    status = f"HTTP {last['status']}" if last["status"] else ""
    return ": ".join(str(part) for part in (_ERRORS.get(last["error"]), status) if part)


def visible_webhook(user: User, webhook_id: int) -> Webhook:
    return get_object_or_404(webhook_operations.webhooks(user), pk=webhook_id)


def visible_delivery(user: User, delivery_id: UUID) -> Delivery:
    return get_object_or_404(webhook_operations.deliveries(user), pk=delivery_id)


@requires(permissions.may_sign_in)
@require_http_methods(["GET", "HEAD"])
def webhooks(request: SignedInRequest) -> HttpResponse:
    """Show the webhooks of the customers that the user manages. NOC staff see all webhooks."""
    page = in_order(
        webhook_operations.managed_webhooks(request.user), by=("id",), after=request.GET.get("after", "")
    )
    context = {"page": page, "may_add": permissions.may_manage_teams(request.user)}
    return render(request, "webhooks/webhooks.html", context)


@requires(permissions.may_manage_teams)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: SignedInRequest) -> HttpResponse:
    """Show the form to add a webhook (GET), or add the webhook and show its page (POST).

    Only the response to the POST shows the webhook's secret.
    """
    if request.method != "POST":
        return render(request, "webhooks/form.html", {"form": WebhookAddForm(user=request.user)})
    form = WebhookAddForm(request.POST, user=request.user)
    if made := form.submit(partial(webhook_create, user=request.user, now=clock.now())):
        webhook, secret = made
        return _page(request, webhook, secret=secret)
    return render(request, "webhooks/form.html", {"form": form}, status=422)


@requires(permissions.may_see_webhooks, of=visible_webhook)
@require_http_methods(["GET", "HEAD"])
def page(request: SignedInRequest, webhook: Webhook) -> HttpResponse:
    return _page(request, webhook)


@requires(permissions.may_manage_webhooks, of=visible_webhook)
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: SignedInRequest, webhook: Webhook) -> HttpResponse:
    """Show the form to change a webhook (GET), or change it (POST).

    If the form is refused, the response has status 422 and shows the errors. If somebody else has changed the
    webhook since the form was opened, the status is 409.
    """
    form_class = WebhookForm if webhook.customer_id is None else CustomerWebhookForm
    if request.method != "POST":
        form = form_class.of(webhook)
        return render(
            request, "webhooks/form.html", {"form": form, "webhook": webhook, "version": form.version}
        )
    saved = save(
        rows=Webhook.objects.all(),
        pk=webhook.pk,
        form=form_class,
        sent=request.POST,
        operation=partial(webhook_change, by=request.user, now=clock.now()),
        keyword="webhook",
    )
    if saved.refused is None:
        messages.success(request, gettext("The webhook is changed."))
        return redirect("web:webhook", webhook_id=webhook.pk)
    context = {"form": saved.form, "webhook": webhook, "version": saved.version}
    return render(request, "webhooks/form.html", context, status=saved.refused)


@requires(permissions.may_manage_webhooks, of=visible_webhook)
@never_cache
@require_POST
def rotate(request: SignedInRequest, webhook: Webhook) -> HttpResponse:
    """Replace the secret of a webhook, and show its page. Only this response shows the new secret."""
    secret = webhook_rotate(webhook=webhook, by=request.user, now=clock.now())
    webhook.refresh_from_db()
    return _page(request, webhook, secret=secret)


@requires(permissions.may_manage_webhooks, of=visible_webhook)
@require_POST
def test(request: SignedInRequest, webhook: Webhook) -> HttpResponse:
    with result_message(
        request, done=gettext("The test is on its way; its result will appear below in a moment.")
    ):
        webhook_test(webhook=webhook, now=clock.now())
    return redirect("web:webhook", webhook_id=webhook.pk)


@requires(permissions.may_manage_webhooks, of=visible_webhook)
@require_POST
def disable(request: SignedInRequest, webhook: Webhook) -> HttpResponse:
    webhook_disable(webhook=webhook, because=Webhook.Disabled.BY_HAND, now=clock.now())
    messages.success(request, gettext("It is disabled: nothing more is sent there."))
    return redirect("web:webhook", webhook_id=webhook.pk)


@requires(permissions.may_manage_webhooks, of=visible_webhook)
@require_POST
def enable(request: SignedInRequest, webhook: Webhook) -> HttpResponse:
    webhook_enable(webhook=webhook)
    messages.success(
        request,
        gettext(
            "It is enabled. Events from the time when it was disabled are not sent. Failed deliveries can be"
            " sent again from the log."
        ),
    )
    return redirect("web:webhook", webhook_id=webhook.pk)


@requires(permissions.may_manage_webhooks, of=visible_webhook)
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: SignedInRequest, webhook: Webhook) -> HttpResponse:
    if request.method != "POST":
        return render(request, "webhooks/remove.html", {"webhook": webhook})
    webhook_remove(webhook=webhook)
    messages.success(request, gettext("The webhook is removed."))
    return redirect("web:webhooks")


@requires(permissions.may_manage_webhooks, of=visible_delivery)
@require_POST
def redeliver(request: SignedInRequest, delivery: Delivery) -> HttpResponse:
    with result_message(request, done=gettext("Sent again.")):
        delivery_redeliver(delivery=delivery, now=clock.now())
    return redirect("web:webhook", webhook_id=delivery.webhook_id)


def _page(request: SignedInRequest, webhook: Webhook, *, secret: str = "") -> HttpResponse:
    """Return the webhook's page.

    If the page has no stream, it polls. It polls more often while a delivery waits for its first attempt.
    """
    found = newest_first(webhook.deliveries.all(), by="created_at", after=request.GET.get("after", ""))
    context = {
        "webhook": webhook,
        "secret": secret,
        "now": clock.now(),
        "page": found,
        "polled_every": "2s" if any(delivery.is_new for delivery in found.rows) else "30s",
        "may_manage": permissions.may_manage_webhooks(request.user, webhook.customer),
    }
    return render(request, "webhooks/webhook.html", context)

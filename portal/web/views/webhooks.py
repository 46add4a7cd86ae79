"""The pages for webhooks: list, add and change webhooks, and show a webhook with its deliveries."""

from functools import partial
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import DomainError
from portal.notifications import queries
from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_operations import (
    delivery_redeliver,
    webhook_change,
    webhook_create,
    webhook_disable,
    webhook_enable,
    webhook_remove,
    webhook_rotate,
    webhook_test,
)
from portal.web.flash_messages import result_message
from portal.web.forms.webhooks import CustomerWebhookForm, WebhookAddForm, WebhookForm
from portal.web.page_guard import SignedInRequest, requires
from portal.web.pagination import in_order, newest_first
from portal.web.versioned_save import save


def visible_webhook(user: User, webhook_id: int) -> Webhook:
    return get_object_or_404(queries.webhooks(user), pk=webhook_id)


def visible_delivery(user: User, delivery_id: UUID) -> Delivery:
    return get_object_or_404(queries.deliveries(user), pk=delivery_id)


@requires(permissions.may_sign_in)
@require_http_methods(["GET", "HEAD"])
def webhooks(request: SignedInRequest) -> HttpResponse:
    """Show the webhooks of the customers that the user manages. NOC staff see all webhooks."""
    page = in_order(queries.managed_webhooks(request.user), by=("id",), after=request.GET.get("after", ""))
    context = {"page": page, "may_add": permissions.may_add_webhooks(request.user)}
    return render(request, "webhooks/webhooks.html", context)


@requires(permissions.may_add_webhooks)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: SignedInRequest) -> HttpResponse:
    """Show the form to add a webhook (GET), or add the webhook and show its page (POST).

    Only the response to the POST shows the webhook's secret.
    """
    if request.method != "POST":
        return render(request, "webhooks/form.html", {"form": WebhookAddForm(user=request.user)})
    form = WebhookAddForm(request.POST, user=request.user)
    if form.is_valid():
        try:
            webhook, secret = webhook_create(user=request.user, now=clock.now(), **form.cleaned_data)
        except DomainError as error:
            form.refuse(error)
        else:
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
        messages.success(request, _("The webhook is changed."))
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
    with result_message(request, done=_("The test is on its way; its result will appear below in a moment.")):
        webhook_test(webhook=webhook, now=clock.now())
    return redirect("web:webhook", webhook_id=webhook.pk)


@requires(permissions.may_manage_webhooks, of=visible_webhook)
@require_POST
def disable(request: SignedInRequest, webhook: Webhook) -> HttpResponse:
    webhook_disable(webhook=webhook, because=Webhook.Disabled.BY_HAND, now=clock.now())
    messages.success(request, _("It is disabled: nothing more is sent there."))
    return redirect("web:webhook", webhook_id=webhook.pk)


@requires(permissions.may_manage_webhooks, of=visible_webhook)
@require_POST
def enable(request: SignedInRequest, webhook: Webhook) -> HttpResponse:
    webhook_enable(webhook=webhook)
    messages.success(
        request,
        _(
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
    messages.success(request, _("The webhook is removed."))
    return redirect("web:webhooks")


@requires(permissions.may_manage_webhooks, of=visible_delivery)
@require_POST
def redeliver(request: SignedInRequest, delivery: Delivery) -> HttpResponse:
    with result_message(request, done=_("Sent again.")):
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

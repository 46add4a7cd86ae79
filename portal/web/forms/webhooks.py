"""The forms to add and change a webhook."""

from typing import Any, cast

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.notifications.event_catalogue import CHOICES, CUSTOMER_CHOICES
from portal.notifications.public_address_check import LONGEST_URL
from portal.web.forms.autocomplete import AutocompleteField
from portal.web.forms.version_field import VersionedForm


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

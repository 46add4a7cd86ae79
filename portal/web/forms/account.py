"""The forms of the user's own account: name, language and e-mail address."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.web.forms.base import TablerForm


class NameForm(TablerForm):
    """The user's name, as other users see it."""

    first_name = forms.CharField(
        label=_("First name"),
        max_length=150,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "given-name"}),
    )
    last_name = forms.CharField(
        label=_("Last name"),
        max_length=150,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "family-name"}),
    )


class LanguageForm(TablerForm):
    """The language of pages and mails.

    The list names each language in that language, so that users can always find their own.
    """

    language = forms.ChoiceField(
        label=_("Language"), choices=settings.LANGUAGES, help_text=_("For pages, and for mails to you")
    )


class EmailForm(TablerForm):
    """A new e-mail address for the account. It must differ from the present address."""

    email = forms.EmailField(
        label=_("New e-mail address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._present = user.email

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        if email == self._present:
            raise forms.ValidationError(_("This is already your address. Enter another one."))
        return email

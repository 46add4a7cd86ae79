"""Neither pages nor API accept text that reverses the text around it or controls a terminal."""

from collections.abc import Iterator
from typing import Any

import pytest
from allauth.account.forms import LoginForm
from allauth.account.forms import ResetPasswordForm as AllauthResetForm
from django import forms

from portal.accounts.models import Customer, User
from portal.inventory.models import Router, Site
from portal.web.fields.base import TablerForm
from tests.integration.api.test_api_v1 import body, client
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
from tests.integration.web_pages.browser import save, signed_in, text

pytestmark = pytest.mark.django_db
TURNED = "Milk \u202enur"
BELL = "Milk\x07run"


def assert_refused(response: Any, field: str, sign: str) -> None:
    assert (response.status_code, response["Content-Type"]) == (422, "application/problem+json")
    (error,) = response.json()["errors"]
    assert (error["field"], error["code"]) == (field, "not_plain_text")
    assert sign in error["detail"]
    assert "Remove them, or type the text again." in error["detail"]


@pytest.mark.parametrize(("written", "sign"), [(TURNED, "U+202E"), (BELL, "U+0007"), ("a\nb", "U+000A")])
def test_api_refuses_it_and_says_what_to_do(
    isp: Isp, alice: User, nora: User, written: str, sign: str
) -> None:
    placed = order(isp, alice, description="Milk run")
    posts: list[tuple[User, str, dict[str, Any], str]] = [
        (alice, "vlls", body(isp, description=written), "description"),
        (alice, "tokens", {"name": written, "scopes": ["read"]}, "name"),
        (nora, "sites", {"name": written}, "name"),
        (nora, "customers", {"name": written}, "name"),
        (nora, "vni-ranges", {"first": 1, "last": 9, "reason": written}, "reason"),
        (
            nora,
            "ports",
            {"router": "rhino", "interface": "x1", "speed_bps": GBIT, "description": written},
            "description",
        ),
    ]
    for user, kind, document, field in posts:
        assert_refused(client(user).post(f"/api/v1/{kind}", document, format="json"), field, sign)
    change = client(alice).patch(
        f"/api/v1/vlls/{placed.vll_id}", {"description": written}, format="json", HTTP_IF_MATCH="*"
    )
    assert_refused(change, "description", sign)
    assert not Customer.objects.filter(name=written).exists()
    assert not Site.objects.filter(name=written).exists()


@pytest.mark.parametrize("written", [TURNED, BELL])
def test_pages_refuse_it_next_to_the_field(isp: Isp, ada: User, nora: User, written: str) -> None:
    noc = signed_in(nora)
    responses = [
        noc.post("/noc/sites/add/", {"name": written}),
        noc.post("/noc/customers/add/", {"name": written}),
        save(noc, f"/noc/sites/{Site.objects.get().pk}/change/", {"name": written}),
        signed_in(ada, reauthenticated=True).post(
            "/account/tokens/", {"name": written, "scope": "read", "days": "30"}
        ),
        signed_in(ada).post("/webhooks/add/", {"url": "https://a.example", "description": written}),
        signed_in(ada).post("/orders/new/", {"description": written}),
    ]
    for response in responses:
        assert response.status_code == 422
        assert "The text contains invisible characters" in text(response)


def test_reason_may_have_several_lines(isp: Isp, nina: User) -> None:
    rhino = Router.objects.get(name="rhino")
    document = {"do": "declare-dead", "reason": "burnt\ndown"}
    url = f"/api/v1/routers/{rhino.pk}/actions"
    response = client(nina).post(url, document, format="json")
    assert response.status_code < 300
    refused = client(nina).post(
        f"/api/v1/routers/{rhino.pk}/actions", document | {"reason": TURNED}, format="json"
    )
    assert_refused(refused, "reason", "U+202E")


def test_names_in_any_script_are_accepted(nora: User) -> None:
    for name in ("קו שכור", "خط مستأجر", "می\u200cخواهم", "東京"):
        assert client(nora).post("/api/v1/sites", {"name": name}, format="json").status_code == 201


def own_forms(kind: type[Any] = forms.BaseForm) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("portal."):
            yield each
        yield from own_forms(each)


def is_stored(form: type[Any], field: forms.Field) -> bool:
    """Return whether the text of the field is stored. Texts for a sign-in or a password reset are not."""
    return isinstance(field, forms.CharField) and not (
        isinstance(field, forms.UUIDField)
        or isinstance(field.widget, forms.PasswordInput)
        or issubclass(form, LoginForm | AllauthResetForm)
    )


def test_every_own_form_with_a_text_accepts_only_plain_text() -> None:
    with_texts = [
        each
        for each in own_forms()
        if any(is_stored(each, field) for field in getattr(each, "base_fields", {}).values())
    ]
    assert with_texts
    assert [each for each in with_texts if not issubclass(each, TablerForm)] == []

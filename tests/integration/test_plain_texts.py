"""Neither pages nor API take a text that turns round what stands beside it, or speaks to a terminal."""

from collections.abc import Iterator
from typing import Any

import pytest
from allauth.account.forms import LoginForm
from allauth.account.forms import ResetPasswordForm as AllauthResetForm
from django import forms

from portal.accounts.models import Customer, User
from portal.inventory.models import Router, Site
from portal.web.forms.base import TablerForm
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
from tests.integration.test_api_v1 import body, client
from tests.integration.web_pages.browser import save, signed_in, text

pytestmark = pytest.mark.django_db
TURNED = "Milk \u202enur"
BELL = "Milk\x07run"


def assert_refused(answer: Any, field: str, sign: str) -> None:
    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    (error,) = answer.json()["errors"]
    assert (error["field"], error["code"]) == (field, "not_plain_text")
    assert sign in error["detail"]
    assert "Remove them, or type the text again." in error["detail"]


@pytest.mark.parametrize(("written", "sign"), [(TURNED, "U+202E"), (BELL, "U+0007"), ("a\nb", "U+000A")])
def test_the_api_refuses_it_and_says_what_to_do(
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
def test_the_pages_refuse_it_beside_the_field(isp: Isp, ada: User, nora: User, written: str) -> None:
    noc = signed_in(nora)
    answers = [
        noc.post("/noc/sites/add/", {"name": written}),
        noc.post("/noc/customers/add/", {"name": written}),
        save(noc, f"/noc/sites/{Site.objects.get().pk}/change/", {"name": written}),
        signed_in(ada).post("/account/tokens/", {"name": written, "scope": "read", "days": "30"}),
        signed_in(ada).post("/webhooks/add/", {"url": "https://a.example", "description": written}),
        signed_in(ada).post("/orders/new/", {"description": written}),
    ]
    for answer in answers:
        assert answer.status_code == 422
        assert "It contains invisible characters" in text(answer)


def test_a_reason_may_have_several_lines(isp: Isp, nina: User) -> None:
    rhino = Router.objects.get(name="rhino")
    asked = {"do": "declare-dead", "reason": "burnt\ndown"}
    url = f"/api/v1/routers/{rhino.pk}/actions"
    answer = client(nina).post(url, asked, format="json")
    assert answer.status_code < 300
    refused = client(nina).post(
        f"/api/v1/routers/{rhino.pk}/actions", asked | {"reason": TURNED}, format="json"
    )
    assert_refused(refused, "reason", "U+202E")


def test_names_of_any_script_are_taken(nora: User) -> None:
    for name in ("קו שכור", "خط مستأجر", "می\u200cخواهم", "東京"):
        assert client(nora).post("/api/v1/sites", {"name": name}, format="json").status_code == 201


def forms_of_ours(kind: type[Any] = forms.BaseForm) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("portal."):
            yield each
        yield from forms_of_ours(each)


def is_kept(form: type[Any], field: forms.Field) -> bool:
    """Of what is written to sign in or to have a password set, nothing is; of a password, its hash."""
    return isinstance(field, forms.CharField) and not (
        isinstance(field, forms.UUIDField)
        or isinstance(field.widget, forms.PasswordInput)
        or issubclass(form, LoginForm | AllauthResetForm)
    )


def test_every_form_of_ours_with_a_text_takes_plain_text() -> None:
    with_texts = [
        each
        for each in forms_of_ours()
        if any(is_kept(each, field) for field in getattr(each, "base_fields", {}).values())
    ]
    assert with_texts
    assert [each for each in with_texts if not issubclass(each, TablerForm)] == []

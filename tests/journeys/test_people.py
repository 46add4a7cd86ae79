"""Permissions, and the sign-in of people and programs, with real processes, mails and a real issuer."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

from devstack.process import LOOPBACK, accepts, free_ports
from devstack.stack import Stack
from tests.faults.web_page import log_in
from tests.integration.accounts.codes import code_of
from tests.integration.accounts.identity_provider import IdentityProvider, identity_provider
from tests.journeys.test_a_year_of_a_line import WAIT_S, Api
from tests.journeys.test_by_the_api import plain
from tests.journeys.test_order_to_traffic import an_order

PASSWORD = "correct horse battery"


@dataclass(frozen=True)
class Site:
    """A second web server: NOC staff need TOTP, people sign in at an issuer, and a proxy forwards
    requests.
    """

    url: str
    issuer: IdentityProvider


@pytest.fixture(scope="module")
def people(live_stack: Stack) -> None:
    """Create Nora, who is NOC staff, and Olga, an operator of Alpine Dairy."""
    nina, api = log_in(live_stack.url, **live_stack.loaded["noc_login"]), Api(live_stack, "noc")
    noc_person(live_stack, nina, api, "nora")
    alice, olga = log_in(live_stack.url, **live_stack.loaded["customer_login"]), browser(live_stack.url)
    password = live_stack.loaded["customer_login"]["password"]
    invite = f"{alice.get('/team/').url.path}invite/"
    press_with_password(alice, invite, password, email="olga@dairy.example", role="operator")
    link = mailed_link(live_stack, api, "olga@dairy.example")
    olga.get(link)
    assert press(olga, link, username="olga", password=PASSWORD).url.path == "/"


@pytest.fixture(scope="module")
def site(live_stack: Stack, people: None) -> Iterator[Site]:
    (port,) = free_ports(1)
    url = f"http://{LOOPBACK}:{port}"
    with identity_provider() as issuer:
        child = live_stack.portal.web_child("web-people", port)
        settings = {
            "BASE_URL": url,
            "LONGLINE_NOC_NEEDS_TOTP": "true",
            "LONGLINE_TRUSTED_PROXIES": f"{LOOPBACK}/32",
            "OIDC_SERVER_URL": issuer.url,
            "OIDC_CLIENT_ID": "longline",
            "OIDC_CLIENT_SECRET": "for-tests",
            "NO_PROXY": LOOPBACK,
        }
        child = replace(child, env={**(child.env or {}), **settings})
        child.start()
        try:
            child.wait_until(lambda: accepts(port))
            yield Site(url, issuer)
        finally:
            child.stop()


def browser(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, follow_redirects=True, timeout=30, trust_env=False)


def press(page: httpx.Client, path: str, **data: str) -> httpx.Response:
    """Send a form."""
    data["csrfmiddlewaretoken"] = page.cookies["csrftoken"]
    return page.post(path, data=data, headers={"Referer": str(page.base_url)})


def press_with_password(page: httpx.Client, path: str, own_password: str, **data: str) -> httpx.Response:
    """Send a form that gives or takes access, and the user's own password where the portal requests it."""
    response = press(page, path, **data)
    if response.url.path == "/login/again/":
        response = press(page, f"{response.url.path}?{response.url.query.decode()}", password=own_password)
    return response


def sql(stack: Stack, query: str, *parameters: object) -> Any:
    with psycopg.connect(stack.portal.services.database_url, autocommit=True) as database:
        row = database.execute(query, parameters).fetchone()
        return None if row is None else row[0]


def noc_person(stack: Stack, nina: httpx.Client, api: Api, name: str) -> None:
    """Add a NOC user as Nina, and let the new user choose a password."""
    password = stack.loaded["noc_login"]["password"]
    added = press_with_password(
        nina, "/noc/staff/add/", password, username=name, email=f"{name}@isp.example", role="noc"
    )
    assert f"{name} is NOC staff now." in added.text
    page = browser(stack.url)
    form = page.get(mailed_link(stack, api, f"{name}@isp.example", "/password/new/"))
    chosen = press(page, form.url.path, password1=PASSWORD, password2=PASSWORD)
    assert chosen.url.path == "/password/new/done/"


def mailed_link(stack: Stack, api: Api, to: str, path: str = "/invitations/") -> str:
    """Return the link with such a path in the mail to this address. Mails are in the messenger's log."""
    log, found = stack.portal.logs / "messenger.log", []

    def mail_is_logged() -> bool:
        _, _, mail = log.read_text(errors="replace").partition(f"To: {to}")
        found[:] = re.findall(rf"https?://[^/\s]+({path}[^\s\"<]+)", mail)
        return bool(found)

    assert api.client.wait(mail_is_logged, timeout_s=WAIT_S), "no mail"
    return str(found[0])


def a_token(page: httpx.Client, scope: str = "order", **ticked: str) -> str:
    """Create a token on the page of API tokens, and return its secret."""
    page.get("/account/tokens/")
    wanted = {"name": "mine", "scope": scope, "days": "30", "networks": "", **ticked}
    made = press_with_password(page, "/account/tokens/", PASSWORD, **wanted)
    secret = re.search(r"ll_[0-9a-f]{12}_[\w-]+", made.text)
    assert secret is not None, made.text
    return secret[0]


def test_invited_users_have_the_rights_of_their_role(live_stack: Stack) -> None:
    alice, api = log_in(live_stack.url, **live_stack.loaded["customer_login"]), Api(live_stack, "customer")
    team = str(alice.get("/team/").url.path)
    password = live_stack.loaded["customer_login"]["password"]
    invited = press_with_password(
        alice, f"{team}invite/", password, email="dora@dairy.example", role="viewer"
    )
    assert "The invitation is on its way." in invited.text
    dora = browser(live_stack.url)
    link = mailed_link(live_stack, api, "dora@dairy.example")
    assert "Alpine Dairy" in dora.get(link).text
    assert press(dora, link, username="dora", password=PASSWORD).url.path == "/"
    assert browser(live_stack.url).get(link).status_code == 410

    token, wanted = a_token(dora), an_order(live_stack, vlan=500)
    membership = sql(
        live_stack,
        "SELECT m.id FROM accounts_membership m JOIN accounts_user u ON u.id = user_id WHERE username = %s",
        "dora",
    )
    assert plain(live_stack, token, "GET", "/vlls").status_code == 200
    assert plain(live_stack, token, "POST", "/vlls", wanted).status_code == 403
    assert press(dora, f"{team}invite/", email="eve@dairy.example", role="admin").status_code == 403

    press_with_password(alice, f"{team}members/{membership}/role/", password, role="operator")
    placed = plain(live_stack, token, "POST", "/vlls", wanted)
    assert placed.status_code == 202, placed.text
    api.client.wait_completed(placed.json()["order"]["id"], timeout_s=WAIT_S)
    assert press(dora, f"{team}invite/", email="eve@dairy.example", role="admin").status_code == 403
    assert plain(live_stack, token, "POST", "/customers", {"name": "x"}).status_code == 403

    press_with_password(alice, f"{team}members/{membership}/role/", password, role="admin")
    # A new session: Dora has entered her password in the other one to create the token.
    dora = log_in(live_stack.url, username="dora", password=PASSWORD)
    refused = press(dora, f"{team}invite/", email="eve@dairy.example", role="viewer")
    assert refused.url.path == "/login/again/", "nobody gets access without the password"
    again = f"{refused.url.path}?{refused.url.query.decode()}"
    assert "on its way" in press(dora, again, password=PASSWORD).text

    press_with_password(alice, f"{team}members/{membership}/remove/", password)
    line = placed.json()["vll"]["id"]
    assert plain(live_stack, token, "GET", f"/vlls/{line}").status_code == 404
    assert plain(live_stack, token, "GET", "/vlls").json()["results"] == []
    api.done("DELETE", f"/vlls/{line}")


def test_first_admin_of_a_customer_can_be_created_by_the_api(live_stack: Stack) -> None:
    nina, name = Api(live_stack, "noc"), "Glarus Ziger"
    customer = nina("POST", "/customers", {"name": name})
    invited = {"customer": name, "email": "gina@ziger.example", "role": "admin"}
    nina("POST", "/invitations", invited)
    gina = browser(live_stack.url)
    link = mailed_link(live_stack, nina, "gina@ziger.example")
    gina.get(link)
    press(gina, link, username="gina", password=PASSWORD)
    orders, token = a_token(gina), a_token(gina, team="on")

    def by_gina(method: str, path: str, body: Any = None) -> httpx.Response:
        return plain(live_stack, token, method, path, body, **{"If-Match": "*"})

    assert nina("GET", "/invitations?customer=Glarus%20Ziger")["results"] == []
    (member,) = by_gina("GET", "/members").json()["results"]
    assert (member["customer"], member["username"], member["role"]) == (name, "gina", "admin")
    assert by_gina("DELETE", f"/members/{member['id']}").status_code == 409
    hugos = {"email": "hugo@ziger.example", "role": "operator"}
    assert plain(live_stack, orders, "POST", "/invitations", hugos).status_code == 403
    response = by_gina("POST", "/invitations", hugos)
    assert response.status_code == 201
    hugo = browser(live_stack.url)
    link = mailed_link(live_stack, nina, "hugo@ziger.example")
    hugo.get(link)
    press(hugo, link, username="hugo", password=PASSWORD)
    (second,) = [each for each in by_gina("GET", "/members").json()["results"] if each != member]
    assert by_gina("PATCH", f"/members/{second['id']}", {"role": "admin"}).json()["role"] == "admin"
    stranger = live_stack.loaded["customer_token"]
    assert plain(live_stack, stranger, "GET", f"/members/{second['id']}").status_code == 404
    assert by_gina("DELETE", f"/members/{second['id']}").status_code == 204

    nina("DELETE", f"/customers/{customer['id']}")
    assert by_gina("GET", "/members").json()["results"] == []


def test_noc_pages_need_a_second_factor(site: Site) -> None:
    nora = browser(site.url)
    nora.get("/login/")
    press(nora, "/login/", login="nora", password=PASSWORD)
    again = nora.get("/noc/")
    assert again.url.path == "/login/again/"
    page = press(nora, f"{again.url.path}?{again.url.query.decode()}", password=PASSWORD)
    seed = re.search(r"<code>([A-Z2-7]+)</code>", page.text)
    assert seed is not None
    codes = re.findall(
        r"<code>([\w-]+)</code>", press(nora, "/account/security/totp/", code=code_of(seed[1])).text
    )
    assert len(codes) == 10
    assert nora.get("/noc/").url.path == "/noc/"

    for code, opens in (("000000", False), (codes[0], True), (codes[0], False)):
        elsewhere = browser(site.url)
        elsewhere.get("/login/")
        response = press(elsewhere, "/login/", login="nora", password=PASSWORD)
        assert response.url.path == "/login/second-factor/"
        assert not elsewhere.get("/noc/").url.path.startswith("/noc/")
        press(elsewhere, "/login/second-factor/", code=code)
        assert (elsewhere.get("/noc/").url.path == "/noc/") is opens


def test_former_noc_staff_lose_access_immediately_and_need_a_new_password_to_return(
    live_stack: Stack, people: None
) -> None:
    nina, api = log_in(live_stack.url, **live_stack.loaded["noc_login"]), Api(live_stack, "noc")
    noc_person(live_stack, nina, api, "noel")
    noel = log_in(live_stack.url, username="noel", password=PASSWORD)
    secret = a_token(noel, "noc")
    assert noel.get("/noc/").url.path == "/noc/"
    assert plain(live_stack, secret, "GET", "/routers").status_code == 200
    place = re.search(r'href="(/noc/people/\d+/)">noel<', nina.get("/noc/staff/").text)
    assert place is not None

    assert "The account is closed." in press(nina, f"{place[1]}close/").text
    assert noel.get("/noc/").url.path == "/login/"
    assert plain(live_stack, secret, "GET", "/routers").status_code == 401
    assert "The account is open." in press(nina, f"{place[1]}reopen/").text
    assert noel.get("/noc/").url.path == "/login/"
    assert plain(live_stack, secret, "GET", "/routers").status_code == 401
    with pytest.raises(AssertionError, match="refused"):
        log_in(live_stack.url, username="noel", password=PASSWORD)


@pytest.mark.parametrize(
    ("claims", "opens"),
    [
        ({"sub": "1", "email": "Olga@Dairy.example", "email_verified": True}, True),
        ({"sub": "2", "email": "olga@dairy.example", "email_verified": False}, False),
        ({"sub": "3", "email": "nobody@dairy.example", "email_verified": True}, False),
    ],
    ids=["verified", "unverified", "unknown"],
)
def test_only_the_issuer_verified_user_can_sign_in(site: Site, claims: dict[str, Any], opens: bool) -> None:
    site.issuer.claims = claims
    visitor = browser(site.url)
    visitor.get("/login/")
    press(visitor, "/login/oidc/sso/")
    assert (visitor.get("/").url.path == "/") is opens
    response = visitor.get("/api/v1/vlls", headers={"Accept": "application/json"})
    assert response.status_code == (200 if opens else 401)
    if opens:
        assert not visitor.get("/routers/").is_success


def test_token_works_only_from_its_networks_and_until_it_expires(live_stack: Stack, site: Site) -> None:
    alice = Api(live_stack, "customer")
    bound = alice("POST", "/tokens", {"name": "a", "scopes": ["read"], "allowed_networks": ["192.0.2.0/24"]})

    def status(url: str, secret: str, **headers: str) -> int:
        sent = {"Authorization": f"Bearer {secret}", **headers}
        return httpx.get(f"{url}/api/v1/vlls", headers=sent, trust_env=False, timeout=30).status_code

    inside, outside = {"X-Forwarded-For": "192.0.2.7"}, {"X-Forwarded-For": "198.51.100.7"}
    assert status(site.url, bound["secret"], **inside) == 200
    assert status(site.url, bound["secret"], **outside) == 403
    # The portal ignores addresses that the caller adds before the proxy's, and all of them without a proxy.
    forged = {"X-Forwarded-For": "192.0.2.7, 198.51.100.7"}
    assert status(site.url, bound["secret"], **forged) == 403
    assert status(live_stack.url, bound["secret"], **inside) == 403

    soon = datetime.now(UTC) + timedelta(seconds=4)
    brief = alice("POST", "/tokens", {"name": "b", "scopes": ["read"], "expires_at": soon.isoformat()})
    assert status(live_stack.url, brief["secret"]) == 200
    shown = alice("GET", f"/tokens/{brief['id']}")
    assert shown["last_used_at"] is not None
    assert "secret" not in shown
    time.sleep(max(0.0, (soon - datetime.now(UTC)).total_seconds()) + 0.1)
    assert status(live_stack.url, brief["secret"]) == 401
    for token in (bound, brief):
        alice("DELETE", f"/tokens/{token['id']}")
    assert status(site.url, bound["secret"], **inside) == 401

"""A refused form on a long page is shown again with its error visible and with the values entered."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.urls import resolve
from playwright.sync_api import Page, Request, Route, TimeoutError, expect

from portal.accounts.models import Customer, User
from portal.vll.models import Order, Vll
from tests.browser.reader import Reader
from tests.browser.test_pages_are_accessible import lines, visits
from tests.integration.isp import Isp
from tests.integration.orders import order

__all__ = ["lines"]

pytestmark = pytest.mark.django_db(transaction=True)


def on_the_site(reader: Callable[..., Reader], url: str, who: str, scripts: bool = True) -> Reader:
    person = reader(url, viewport={"width": 390, "height": 600}, java_script_enabled=scripts)
    # A check during an animation of scrolling would see where the window was before.
    person.page.emulate_media(reduced_motion="reduce")
    person.be_signed_in(who)
    return person


def expect_visible_error(page: Page, label: str, error: str) -> None:
    field = page.get_by_label(label, exact=True).and_(page.locator('[aria-invalid="true"]'))
    expect(field).to_be_focused()
    expect(field).to_be_in_viewport()
    expect(page.get_by_text(error)).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_rejection_without_a_reason_shows_its_error(
    live_server: Any, isp: Isp, alice: User, nora: User, reader: Callable[..., Reader], scripts: bool
) -> None:
    Customer.objects.update(approve_up_to_bps=1)
    pending = order(isp, alice)
    assert pending.state == "held"
    person = on_the_site(reader, live_server.url, "nora", scripts)
    person.open(f"/noc/orders/{pending.pk}/")
    person.page.get_by_role("button", name="Reject this order").click()
    expect_visible_error(person.page, "Reason", "Give a reason: the customer can read it.")
    if scripts:
        # The page's own address, so that reloading leads back to the page.
        expect(person.page).to_have_url(re.compile(rf"/noc/orders/{pending.pk}/$"))
        person.page.get_by_label("Reason").fill("No capacity")
        person.page.get_by_role("button", name="Reject this order").click()
        expect(person.page.get_by_text("The order is rejected")).to_be_visible()
        assert Order.objects.get(pk=pending.pk).state == "rejected"
    assert person.complaints == []


@pytest.mark.parametrize(
    ("fold", "button", "label", "error"),
    [
        ("Freeze: change nothing on it", "Freeze it", "Why", "Enter the reason for the freeze."),
        (
            "This router will not come back",
            "Declare it dead",
            "Why it will not come back",
            "Give a reason why the router is dead: it is kept.",
        ),
    ],
)
def test_a_folded_form_of_a_router_opens_at_its_error(
    live_server: Any,
    isp: Isp,
    nina: User,
    reader: Callable[..., Reader],
    fold: str,
    button: str,
    label: str,
    error: str,
) -> None:
    person = on_the_site(reader, live_server.url, "nina")
    person.open(f"/noc/routers/{isp.routers['rhino'].pk}/")
    person.page.get_by_text(fold).click()
    person.page.get_by_role("button", name=button).click()
    expect_visible_error(person.page, label, error)
    assert person.accessibility_violations() == []


def test_a_refused_calibration_keeps_what_was_pasted(
    live_server: Any, isp: Isp, nora: User, reader: Callable[..., Reader]
) -> None:
    person = on_the_site(reader, live_server.url, "nora")
    person.open(f"/noc/routers/{isp.routers['rhino'].pk}/")
    page = person.page
    page.get_by_text("Use what was measured").click()
    label = "Everything that longline-agent calibrate -json printed on rhino"
    page.get_by_label(label).fill("rhino, VPP 25.10")
    page.get_by_role("button", name="Use it").click()
    expect_visible_error(page, label, "This is not the output of longline-agent calibrate -json")
    expect(page.get_by_label(label)).to_have_value("rhino, VPP 25.10")


def test_staff_form_without_a_name_shows_the_error_at_the_form(
    live_server: Any, nina: User, reader: Callable[..., Reader]
) -> None:
    person = on_the_site(reader, live_server.url, "nina")
    person.open("/noc/staff/")
    page = person.page
    page.evaluate("document.querySelectorAll('form').forEach((form) => { form.noValidate = true; })")
    page.get_by_role("button", name=re.compile("Add")).click()
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("main [aria-invalid=true]").first).to_be_focused()


# A character that no field accepts: no number, address, name or text has it.
UNACCEPTABLE = "\u0007"
# Skip selects alone, search fields and forms in the header: they cannot be wrong.
FILL_IN = """
([number, text]) => {
  const forms = [...document.querySelectorAll('main form[method="post" i]')];
  const form = forms[number];
  if (!form) return null;
  const fields = [...form.elements].filter((each) =>
    each.matches('textarea, input:not([type])') || ["text", "email", "password"].includes(each.type));
  if (fields.length === 0) return "nothing to write";
  for (let fold = form.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    fold.open = true;
  }
  form.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  for (const field of fields) field.value = text;
  form.noValidate = true;
  const button = [...form.elements].find((each) =>
    each.matches('button[type="submit"]:not([formaction]):not([hidden])') && each.value !== "check" &&
    !["find", "any", "check"].includes(each.name));
  return button ? [forms.indexOf(form), [...form.elements].indexOf(button)] : "no button";
}
"""
SUBMIT = """
([form, button]) => {
  const sent = [...document.querySelectorAll('main form[method="post" i]')][form];
  sent.requestSubmit(sent.elements[button]);
}
"""
ERRORS = "#error-summary, main [aria-invalid='true'], main .ll-error, [data-form-error]"
VISIBLE = f"""
() => {{
  const shown = [...document.querySelectorAll("{ERRORS}")].filter((each) =>
    each.matches("input, select, textarea") || each.textContent.trim());
  if (shown.length === 0) return null;
  const focus = document.activeElement, box = focus.getBoundingClientRect();
  return focus.matches("{ERRORS}") && box.top > -1 && Math.min(box.bottom, box.top + 40) <= innerHeight;
}}
"""


def result_of_invalid_form(page: Page, address: str, number: int) -> str | None:
    """Send the form of that number with invalid values; return the result.

    The result is "visible", or a description of the problem. It is "" if the form was accepted or has no
    field, and None if the page has no such form.
    """
    page.goto(address)
    found = page.evaluate(FILL_IN, [number, UNACCEPTABLE])
    if not isinstance(found, list):
        return found and ""
    status = status_of_submission(page, found)
    if status < 400:
        return ""
    try:
        page.wait_for_function(f"() => ({VISIBLE})() === true", timeout=10_000)
    except TimeoutError:
        return (
            f"{status}: {page.evaluate(VISIBLE)}, {page.evaluate('document.activeElement.outerHTML')[:120]}"
        )
    return "visible"


def status_of_submission(page: Page, form_and_button: list[int]) -> int:
    """Send the form and return the status, 204 for an acceptance.

    The browser gets no page after an acceptance, because that page would interrupt the next one.
    """

    def is_submission(request: Request) -> bool:
        # The browser may send a request for a preview too.
        return request.method == "POST" and "/check/" not in request.url

    def answer(route: Route) -> None:
        if not is_submission(route.request):
            route.continue_()
            return
        response = route.fetch(max_redirects=0)
        if response.status < 400:
            route.fulfill(status=204)
        else:
            route.fulfill(response=response)

    page.route("**/*", answer)
    with page.expect_response(lambda it: is_submission(it.request)) as sent:
        page.evaluate(SUBMIT, form_and_button)
    page.unroute("**/*", answer)
    return sent.value.status


def test_every_form_that_is_refused_shows_its_first_error(
    live_server: Any,
    lines: dict[str, Vll],
    bob: User,
    charlie: User,
    nora: User,
    nina: User,
    reader: Callable[..., Reader],
) -> None:
    wrong, visible = {}, set()
    for who, addresses in visits(lines).items():
        if not who:
            continue
        person = on_the_site(reader, live_server.url, who)
        for address in addresses:
            for number in range(20):
                result = result_of_invalid_form(person.page, f"{live_server.url}{address}", number)
                if result is None:
                    break
                if result == "visible":
                    visible.add((who, resolve(address.split("?")[0]).view_name))
                elif result:
                    wrong[who, address, number] = result
    assert wrong == {}
    assert {
        ("alice", "web:order"),
        ("alice", "web:vll-change"),
        ("nora", "web:noc-order"),
        ("nora", "web:noc-router"),
        ("nora", "web:noc-ports-add"),
        ("nina", "web:noc-adopt"),
    } <= visible

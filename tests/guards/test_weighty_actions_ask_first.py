"""A button acts on one click only if its action is harmless or easily undone.

All other actions need a confirmation.

``docs/operate/accounts.md`` lists them, and those that require a password or a code.
"""

import re
from collections.abc import Iterator

import pytest

from devstack.folders import ROOT

TEMPLATES = ROOT / "templates"
_TAG = r"(?:\{%.*?%\}|\{\{.*?\}\}|[^>])*?"
_FORM = re.compile(rf"<form\b(?P<head>{_TAG})>(?P<body>.*?)</form>", re.DOTALL)
_SUBMIT = re.compile(rf'<button\b{_TAG}type="submit"{_TAG}>', re.DOTALL)
_POST_BUTTON = re.compile(r'\{% post_button \S.*? "([\w:-]+)"(?:[^%]*\bdo="([\w-]+)")?')
# This fragment is a button. Its includes name the value.
_RESERVATION = "orders/_reservation_button.html"
_RESERVATION_BUTTON = re.compile(rf'\{{% include "{_RESERVATION}" with do="(\w+)"')
_LEADS_TO = re.compile(r'action="\{% url "([\w:-]+)"')
_VALUE = re.compile(r'\bvalue="([\w-]+)"')
# A form with fields or choices is not a one-click action.
_FILLED_IN = re.compile(
    r"_field\.html|_checkbox\.html|_rate_field\.html|_provenance\.html|_fields\.html|<select|<textarea"
    r'|type="(?:text|file|checkbox|radio)"'
)
# A form without an address posts to its own page, which a link opened as the confirmation.
_OWN_PAGE = ""
HARMLESS = {
    # Reading, and the reader's own session.
    ("account_logout", ""),
    ("set_language", ""),
    ("web:noc-order-plan", ""),
    ("web:noc-netbox-run", "look"),
    # Others can undo these immediately in the same place.
    ("web:noc-alarm-unacknowledge", ""),
    ("web:noc-alarm-unsilence", ""),
    ("web:trouble-close", ""),
    ("web:noc-router-actions", "maintenance-begin"),
    ("web:noc-router-actions", "maintenance-end"),
    ("web:webhook-enable", ""),
    ("web:webhook-disable", ""),
    ("web:invitation-revoke", ""),
    # These repeat only what is already wanted.
    ("web:noc-order-force-retry", ""),
    ("web:noc-router-actions", "retry"),
    ("web:webhook-test", ""),
    ("web:webhook-redeliver", ""),
    # These end an exception that a person made: the router follows its intent again.
    ("web:noc-router-actions", "release"),
    ("web:noc-router-actions", "unfreeze"),
    ("web:noc-router-actions", "freeze-looked"),
    ("web:noc-router-dead", ""),
    # The purpose of these pages is the action, which they describe first.
    ("web:noc-order-approve", ""),
    ("web:noc-import-begin", ""),
    ("web:noc-import-cancel", ""),
    # The reader's own reservation, which lasts for minutes.
    ("web:reservation-renew", ""),
    ("web:reservation-release", ""),
    ("web:order-reservation", "make"),
    ("web:order-reservation", "renew"),
    ("web:order-reservation", "release"),
    # The line's page offers the reverse action afterwards.
    ("web:vll-resume", ""),
    ("web:vll-restore", ""),
    ("web:vll-retry", ""),
    ("web:vll-cancel", ""),
    ("web:activation-test-call-off", ""),
    # The list of alarms offers the reverse action.
    ("web:noc-alarm-acknowledge", "list"),
    ("web:noc-alarm-unsilence", "list"),
}


def one_click_actions() -> Iterator[tuple[str, str]]:
    """Yield the (route, value) of every button that acts on one click on a page that shows something else."""
    for path in sorted(TEMPLATES.rglob("*.html")):
        for form in _FORM.finditer(path.read_text()):
            if 'method="post"' not in form["head"] or _FILLED_IN.search(form["body"]):
                continue
            target = _LEADS_TO.search(form["head"])
            for button in _SUBMIT.finditer(form["body"]):
                yield _action(button[0], target[1] if target else _OWN_PAGE)
        # Buttons that submit a form at another place of the page.
        for button in _SUBMIT.finditer(path.read_text()):
            if "formaction=" in button[0] and path != TEMPLATES / _RESERVATION:
                yield _action(button[0], _OWN_PAGE)
        for value in _RESERVATION_BUTTON.findall(path.read_text()):
            yield "web:order-reservation", value
        yield from _POST_BUTTON.findall(path.read_text())


def _action(button: str, route: str) -> tuple[str, str]:
    leads_to, value = _LEADS_TO.search(button), _VALUE.search(button)
    return leads_to[1] if leads_to else route, value[1] if value else ""


def test_only_harmless_actions_take_one_click() -> None:
    assert set(one_click_actions()) - {(_OWN_PAGE, "")} == HARMLESS


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("noc/routers/_actions.html", "hold"),
        ("noc/routers/_actions.html", "reconcile"),
        ("noc/routers/_actions.html", "1"),
        ("noc/routers/_vlan_losses.html", "1"),
        ("noc/staff/_person_actions.html", "1"),
        ("noc/inventory/customer.html", "1"),
        ("noc/inventory/list.html", "1"),
        ("noc/routers/drain.html", "suspend"),
        ("noc/netbox/netbox.html", "apply"),
        ("webhooks/_actions.html", "1"),
    ],
)
def test_a_weighty_action_has_a_confirmation_dialog(template: str, value: str) -> None:
    text = (TEMPLATES / template).read_text()
    dialogs = re.findall(r"\{% include \"ui/_ask_first\.html\" with [^%]*\bvalue=\"([\w-]+)\"", text)
    assert value in dialogs


def test_each_button_that_asks_first_has_a_text() -> None:
    """The button shows ``label``; ``described`` is only for screen readers."""
    asks = re.compile(r'\{% include "ui/_ask_first\.html"(.*?)%\}')
    labelled = re.compile(r"\bas(?:var)? label\b")
    found = 0
    for path in TEMPLATES.rglob("*.html"):
        text = path.read_text()
        for ask in asks.finditer(text):
            found += 1
            assert "label=" in ask[1] or labelled.search(text, 0, ask.start()), path
    assert found

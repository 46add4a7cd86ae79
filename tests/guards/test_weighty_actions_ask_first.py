"""A button acts on one click only if its action is harmless or is easily undone; all others ask first.

``docs/operate/accounts.md`` lists the actions that ask, and those that require a password or a code.
"""

import re
from collections.abc import Iterator

import pytest

from devstack.folders import ROOT

TEMPLATES = ROOT / "templates"
_TAG = r"(?:\{%.*?%\}|\{\{.*?\}\}|[^>])*?"
_FORM = re.compile(rf"<form\b(?P<head>{_TAG})>(?P<body>.*?)</form>", re.DOTALL)
_SUBMIT = re.compile(rf'<button\b{_TAG}type="submit"{_TAG}>', re.DOTALL)
_LEADS_TO = re.compile(r'action="\{% url "([\w:-]+)"')
_VALUE = re.compile(r'\bvalue="([\w-]+)"')
# What a reader fills in or chooses is a question of its own.
_FILLED_IN = re.compile(
    r"_field\.html|_checkbox\.html|_rate_field\.html|_provenance\.html|_fields\.html|<select|<textarea"
    r'|type="(?:text|file|checkbox|radio)"'
)
# A form of the page that a link led to: the page is the question.
_OWN_PAGE = ""
HARMLESS = {
    # Reading, and the reader's own session.
    ("account_logout", ""),
    ("set_language", ""),
    ("web:noc-order-plan", ""),
    ("web:noc-netbox-run", "look"),
    # What others may undo at once, in the same place.
    ("web:noc-alarm-unacknowledge", ""),
    ("web:noc-alarm-unsilence", ""),
    ("web:trouble-close", ""),
    ("web:noc-router-actions", "maintenance-begin"),
    ("web:noc-router-actions", "maintenance-end"),
    ("web:webhook-enable", ""),
    ("web:webhook-disable", ""),
    ("web:noc-customer-reopen", ""),
    ("web:invitation-revoke", ""),
    # Only repeats what is already wanted.
    ("web:noc-order-force-retry", ""),
    ("web:noc-router-actions", "retry"),
    ("web:webhook-test", ""),
    ("web:webhook-redeliver", ""),
    # The end of an exception that somebody made: the router does again what is wanted.
    ("web:noc-router-actions", "release"),
    ("web:noc-router-actions", "unfreeze"),
    ("web:noc-router-actions", "freeze-looked"),
    ("web:noc-router-dead", ""),
    # The page has shown what will happen, and this is the page's purpose.
    ("web:noc-order-approve", ""),
    ("web:noc-import-begin", ""),
    ("web:noc-import-cancel", ""),
    # The reader's own reservation, which lasts for minutes.
    ("web:hold-renew", ""),
    ("web:hold-release", ""),
    ("web:order-hold", "make"),
    ("web:order-hold", "renew"),
    ("web:order-hold", "release"),
    # The line's page offers the opposite right afterwards.
    ("web:vll-resume", ""),
    ("web:vll-restore", ""),
    ("web:vll-retry", ""),
    ("web:vll-cancel", ""),
    ("web:line-test-call-off", ""),
    # From the list of alarms, which has the way back.
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
        # Buttons that send a form elsewhere on the page.
        for button in _SUBMIT.finditer(path.read_text()):
            if "formaction=" in button[0]:
                yield _action(button[0], _OWN_PAGE)


def _action(button: str, route: str) -> tuple[str, str]:
    leads_to, value = _LEADS_TO.search(button), _VALUE.search(button)
    return leads_to[1] if leads_to else route, value[1] if value else ""


def test_only_harmless_actions_take_one_click() -> None:
    assert set(one_click_actions()) - {(_OWN_PAGE, "")} == HARMLESS


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("noc/_router_actions.html", "hold"),
        ("noc/_router_actions.html", "reconcile"),
        ("noc/_router_actions.html", "1"),
        ("noc/_router_vlan_losses.html", "1"),
        ("noc/_person_actions.html", "1"),
        ("noc/_drain_row.html", "suspend"),
        ("noc/netbox.html", "apply"),
        ("webhooks/_actions.html", "1"),
        ("noc/quarantine.html", "1"),
    ],
)
def test_a_weighty_action_asks_in_a_dialog(template: str, value: str) -> None:
    text = (TEMPLATES / template).read_text()
    asked = re.findall(r"\{% include \"ui/_ask_first\.html\" with [^%]*\bvalue=\"([\w-]+)\"", text)
    assert value in asked

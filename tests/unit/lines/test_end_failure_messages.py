"""Messages about ends that a router could not configure as ordered."""

import pytest
from django.utils import translation

from portal.vll.sentences import ROUTER_REASONS, router_reason_sentence
from provisioning.agent_reply_decoder import REASON_CODES


def test_each_code_that_agents_give_has_a_sentence() -> None:
    assert set(ROUTER_REASONS) == frozenset().union(*REASON_CODES.values())


def test_a_sentence_names_the_router_and_the_conflicting_object() -> None:
    reason = {
        "code": "foreign_subinterface",
        "message": "VLAN 7 on host-cust1 ...",
        "object": "host-cust1.7",
    }
    assert (
        router_reason_sentence(reason, router="rhino")
        == "Something else on rhino already uses this VLAN (host-cust1.7)."
    )
    with translation.override("de"):
        assert (
            router_reason_sentence(reason, router="rhino")
            == "Etwas anderes auf rhino verwendet dieses VLAN schon (host-cust1.7)."
        )


@pytest.mark.parametrize("reason", [{"code": "port_in_use"}, {"code": "port_in_use", "object": ""}])
def test_without_an_object_there_are_no_empty_brackets(reason: dict[str, str]) -> None:
    assert router_reason_sentence(reason, router="r{0}") == "Something else on r{0} already uses this port."


def test_a_code_of_a_newer_agent_is_shown_unchanged() -> None:
    assert router_reason_sentence({"code": "on_fire", "message": "It burns"}, router="rhino") == "It burns"
    assert router_reason_sentence(None, router="rhino") == ""

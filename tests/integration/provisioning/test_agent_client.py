"""The portal talks only to the router that it means, and sends nothing to any other server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.core import clock
from portal.inventory import pki
from portal.inventory.pki import PORTAL_URI, router_uri
from provisioning.agent_client import AgentClient, Refused, Unreachable
from provisioning.agent_reply_decoder import Answered
from provisioning.intent_document import RouterIntent, intent_for
from tests.integration.certificates import certificates, identity_in, issue
from tests.integration.stand_in_agent import StandInAgent, problem, serving, silent_port

RHINO = "router-rhino"


@pytest.fixture(scope="module")
def folder() -> Path:
    return certificates()


@pytest.fixture
def rhino(folder: Path) -> Iterator[StandInAgent]:
    with serving(StandInAgent("rhino"), pki=folder) as agent:
        yield agent


def intent() -> RouterIntent:
    return intent_for(router="rhino", generation=7, rows=[])


def send(url: str, folder: Path, pinned: frozenset[str] | None = None) -> Answered | Refused | Unreachable:
    with AgentClient(url=url, router="rhino", pki=folder, pinned=pinned) as client:
        return client.put_intent(intent(), intent().document())


def fingerprint(folder: Path, name: str) -> str:
    return identity_in(folder / f"{name}.pem").fingerprint


def test_right_router_answers(rhino: StandInAgent, folder: Path) -> None:
    answered = send(rhino.url, folder)
    assert isinstance(answered, Answered)
    assert answered.document["generation"] == 7
    assert [each["generation"] for each in rhino.intents] == [7]


def test_pinned_certificate_is_accepted(rhino: StandInAgent, folder: Path) -> None:
    assert isinstance(send(rhino.url, folder, frozenset({fingerprint(folder, RHINO)})), Answered)


@pytest.mark.parametrize("pinned", [frozenset[str](), frozenset({"0" * 64})])
def test_unpinned_certificate_receives_nothing(
    rhino: StandInAgent, folder: Path, pinned: frozenset[str]
) -> None:
    outcome = send(rhino.url, folder, pinned)
    assert isinstance(outcome, Unreachable)
    assert "revoked or was never registered" in outcome.error
    assert rhino.intents == []


def test_another_router_at_the_address_receives_nothing(folder: Path) -> None:
    with serving(StandInAgent("rhino"), pki=folder, identity="router-hippo") as impostor:
        outcome = send(impostor.url, folder)
        assert isinstance(outcome, Unreachable)
        assert "router/hippo responded instead of rhino" in outcome.error
        assert impostor.intents == []


def test_server_with_the_portal_role_receives_nothing(folder: Path) -> None:
    with serving(StandInAgent("rhino"), pki=folder, identity="portal") as impostor:
        outcome = send(impostor.url, folder)
        assert isinstance(outcome, Unreachable)
        assert impostor.intents == []


def test_right_name_of_another_authority_receives_nothing(folder: Path, tmp_path: Path) -> None:
    foreign = pki.authority_create(tmp_path, now=clock.now())
    issue(tmp_path, RHINO, router_uri("rhino"), foreign)
    issue(tmp_path, "portal", PORTAL_URI, foreign)
    with serving(StandInAgent("rhino"), pki=tmp_path) as impostor:
        outcome = send(impostor.url, folder)
        assert isinstance(outcome, Unreachable)
        assert "certificate verify failed" in outcome.error
        assert impostor.intents == []


def test_each_new_connection_is_verified(folder: Path) -> None:
    """The client also detects a server that takes over the address between two requests."""
    with serving(StandInAgent("rhino"), pki=folder) as agent:
        client = AgentClient(url=agent.url, router="rhino", pki=folder, pinned=None)
        assert not isinstance(client.stored_intent(), Unreachable)
        port = int(agent.url.rpartition(":")[2])
    impostor = StandInAgent("rhino")
    with serving(impostor, pki=folder, identity="router-hippo", port=port), client:
        outcome = client.put_intent(intent(), intent().document())
        assert isinstance(outcome, Unreachable)
        assert "router/hippo responded" in outcome.error
        assert impostor.intents == []


def test_refusal_contains_the_problem_document(rhino: StandInAgent, folder: Path) -> None:
    rhino.answer = lambda _: problem(409, "old-generation", held=9, generation=7)
    outcome = send(rhino.url, folder)
    assert isinstance(outcome, Refused)
    assert (outcome.type, outcome.problem["held"]) == ("urn:longline:error:old-generation", 9)


@pytest.mark.parametrize(
    "answer",
    [(200, b"<html>"), (200, {"schema": 1}), (500, b"oops"), (302, b""), (403, {"title": "no type"})],
)
def test_answer_that_violates_the_contract_is_an_error(
    rhino: StandInAgent, folder: Path, answer: tuple[int, object]
) -> None:
    rhino.answer = lambda _: answer
    assert isinstance(send(rhino.url, folder), Unreachable)


def test_closed_port_is_unreachable(folder: Path) -> None:
    assert isinstance(send("https://127.0.0.1:1", folder), Unreachable)


def test_port_that_never_responds_is_unreachable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("provisioning.agent_client.CONNECT_S", 0.2)
    with silent_port() as url:
        assert isinstance(send(url, folder), Unreachable)

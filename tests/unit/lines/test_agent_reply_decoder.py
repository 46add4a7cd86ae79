"""The strict decoder of agents' replies: anything outside the contract is an error, never skipped."""

import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from provisioning.agent_reply_decoder import BadReply, StateHead, decoded, reply_decode
from provisioning.intent_document import RouterIntent, intent_for
from tests.unit.lines.test_intent_document import rows_of, tombstone

CONTRACT = Path(__file__).parents[2] / "contract"
REPLIES = CONTRACT / "replies"


def sent_for(reply: dict[str, Any]) -> RouterIntent:
    """Return an intent that fits this reply."""
    wanted = json.loads((CONTRACT / "intents" / "valid" / "vxlan4-dot1q.json").read_text())["present"][0]
    present, rows = [], []
    for end in reply["ends"]:
        named = {name: end[name] for name in ("vll", "end", "revision")}
        if end["status"] == "removed":
            rows.append(tombstone(UUID(end["vll"]), end["end"], end["revision"]))
        else:
            present.append(wanted | named)
    rows += rows_of({"present": present, "removed": []})
    return intent_for(router=reply["router"], generation=reply["generation"], rows=rows)


@pytest.fixture
def reply() -> dict[str, Any]:
    return json.loads((REPLIES / "applied.json").read_text())


@pytest.mark.parametrize("name", ["applied", "relabelled", "vpp-refused", "vpp-unavailable"])
def test_every_reply_of_the_contract_is_understood(name: str) -> None:
    document = json.loads((REPLIES / f"{name}.json").read_text())
    decoded = reply_decode(json.dumps(document).encode(), sent=sent_for(document))
    assert [(str(end.vll), end.side, end.revision, end.status, end.reason) for end in decoded.ends] == [
        (end["vll"], end["end"], end["revision"], end["status"], end["reason"]) for end in document["ends"]
    ]
    assert decoded.document == document


def test_every_reason_that_the_contract_names_is_understood(reply: dict[str, Any]) -> None:
    """Every reason in the tables of docs/reference/agent-api.md is understood, with its details."""
    text = (CONTRACT.parent.parent / "docs" / "reference" / "agent-api.md").read_text()
    named = {
        (status, code)
        for status, meaning in re.findall(
            r"^\| `(pending|conflict|failed)` \| ([^|]*) \|", text, re.MULTILINE
        )
        for code in re.findall(r"`(\w+)`", meaning)
        if code not in ("object", "retval", "message")
    }
    assert len(named) > 9
    for status, code in named:
        reason = {"code": code, "message": "so", "object": None, "retval": None, "vpp_message": None}
        reply["ends"][0] |= {"status": status, "policed": False, "reason": reason}
        assert reply_decode(json.dumps(reply).encode(), sent=sent_for(reply)).ends[0].status == status


def test_only_conflicts_and_listed_return_codes_are_permanent(reply: dict[str, Any]) -> None:
    decoded = reply_decode(json.dumps(reply).encode(), sent=sent_for(reply))
    assert [end.permanent for end in decoded.ends] == [False, False, True]
    refused = json.loads((REPLIES / "vpp-refused.json").read_text())
    assert reply_decode(json.dumps(refused).encode(), sent=sent_for(refused)).ends[0].permanent
    refused["ends"][0]["reason"]["retval"] = -2  # a stale index: the next reading may be better
    assert not reply_decode(json.dumps(refused).encode(), sent=sent_for(refused)).ends[0].permanent


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["ends"][0].update(status="fine"),
        lambda r: r["ends"][0].update(status="removed"),
        lambda r: r["ends"][1].update(status="verified"),
        lambda r: r["ends"][0].update(revision=4),
        lambda r: r["ends"][0].update(revision="3"),
        lambda r: r["ends"][0].update(vll="no uuid"),
        lambda r: r["ends"][0].update(extra=1),
        lambda r: r["ends"][0].update(reason={"code": "vpp_refused"}),
        lambda r: r["ends"][2].update(reason=None),
        lambda r: r["ends"][2]["reason"].update(code="vpp_refused"),
        lambda r: r["ends"].pop(),
        lambda r: r["ends"].append(r["ends"][0]),
        lambda r: r.update(generation=43),
        lambda r: r.update(router="hippo"),
        lambda r: r.update(schema=2),
        lambda r: r.update(applied=1),
        lambda r: r.update(look="now"),
        lambda r: r.update(more=True),
        lambda r: r.pop("quarantined"),
        lambda r: r["quarantined"].append({"vll": "", "end": "z"}),
        lambda r: r["ends"][2]["reason"].update(message="\0"),
        lambda r: r["ends"][2]["reason"].update(message="\ud800"),
    ],
)
def test_a_reply_outside_the_contract_is_an_error(reply: dict[str, Any], change: Any) -> None:
    sent = sent_for(reply)
    change(reply)
    with pytest.raises(BadReply):
        reply_decode(json.dumps(reply).encode(), sent=sent)


def test_every_end_has_the_number_of_its_read_of_vpp(reply: dict[str, Any]) -> None:
    decoded = reply_decode(json.dumps(reply).encode(), sent=sent_for(reply))
    assert {end.look for end in decoded.ends} == {reply["look"]}


def test_an_agent_from_before_policers_polices_nothing(reply: dict[str, Any]) -> None:
    sent = sent_for(reply)
    del reply["look"]
    for end in reply["ends"]:
        del end["policed"]
    decoded = reply_decode(json.dumps(reply).encode(), sent=sent)
    assert decoded.ends
    assert not any(end.policed or end.look for end in decoded.ends)


def test_an_error_names_the_place_and_why(reply: dict[str, Any]) -> None:
    sent = sent_for(reply)
    reply["ends"][1]["revision"] = "3"
    with pytest.raises(BadReply, match=r"^/ends/1/revision: Expected `int`, got `str`$"):
        reply_decode(json.dumps(reply).encode(), sent=sent)


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"[" * 100_000, b"\xff"])
def test_a_reply_that_is_no_object_is_an_error(body: bytes, reply: dict[str, Any]) -> None:
    with pytest.raises(BadReply):
        reply_decode(body, sent=sent_for(reply))


def test_an_agent_may_have_no_intent() -> None:
    assert decoded(StateHead, b'{"router": "rhino", "held": null}', router="rhino").stored is None


def test_the_state_of_another_router_is_an_error() -> None:
    with pytest.raises(BadReply):
        decoded(StateHead, b'{"router": "hippo", "held": null}', router="rhino")
    with pytest.raises(BadReply):
        body = b'{"router": "rhino", "held": {"generation": 5, "sha256": null}}'
        decoded(StateHead, body, router="rhino")

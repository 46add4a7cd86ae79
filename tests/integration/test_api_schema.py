"""The schema says what the API does, its copy in docs/ is current, and its page needs nobody else."""

from collections.abc import Iterator
from importlib import reload
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from django.test import Client
from drf_spectacular.validation import validate_schema

from portal import wsgi
from portal.api.openapi.document import document

COPY = Path(__file__).parents[2] / "docs" / "openapi.yaml"
# Not repeatable, and why.
NOT_KEPT = {
    ("post", "/api/v1/tokens"): "a kept answer would keep the secret with it",
    ("post", "/api/v1/routers/{id}/enrolment"): "a kept answer would keep the token with it",
    ("post", "/api/v1/webhooks"): "a kept answer would keep the secret with it",
    ("post", "/api/v1/webhooks/{id}/secret"): "a kept answer would keep the secret with it",
    ("post", "/api/v1/vlls/validate"): "it writes nothing",
    ("post", "/api/v1/enroll"): "its token works once, and nobody is signed in",
}
METHODS = ("get", "post", "put", "patch", "delete")


def operations() -> list[Any]:
    return [
        pytest.param(item[method], id=f"{method.upper()} {path}")
        for path, item in document()["paths"].items()
        for method in METHODS
        if method in item
    ]


def test_the_schema_is_openapi_3_1() -> None:
    assert document()["openapi"] == "3.1.0"
    validate_schema(document())


def test_the_copy_in_docs_is_current() -> None:
    copy = yaml.load(COPY.read_text(), Loader=yaml.CSafeLoader)
    assert copy == document(), "run `make openapi` and commit docs/openapi.yaml"


@pytest.mark.parametrize("operation", operations())
def test_every_operation_is_described_and_has_examples_that_its_schema_accepts(operation: Any) -> None:
    assert operation["summary"]
    bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
    media = [content for body in bodies for content in body.get("content", {}).values()]
    assert media
    for content in media:
        schema = {**content["schema"], "components": document()["components"]}
        jsonschema.validate(content["example"], schema, format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("operation", operations())
def test_every_error_is_a_problem_document(operation: Any) -> None:
    errors = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
    assert {"401", "429", "503"} <= set(errors)
    for answer in errors.values():
        assert list(answer["content"]) == ["application/problem+json"]


def test_no_request_waits_for_the_schema_to_be_made() -> None:
    document.cache_clear()
    reload(wsgi)
    assert document.cache_info().currsize == 1


def test_every_write_takes_an_idempotency_key() -> None:
    for path, item in document()["paths"].items():
        for method in set(item) & {"post", "put", "patch", "delete"}:
            if (method, path) in NOT_KEPT:
                continue
            names = {parameter["name"] for parameter in item[method]["parameters"]}
            assert "Idempotency-Key" in names, f"{method} {path}: put @once_per_key on it"


@pytest.mark.django_db
def test_anybody_may_read_the_schema() -> None:
    assert Client().get("/api/v1/schema").json() == document()


def test_the_schema_says_which_scopes_a_token_needs() -> None:
    paths = document()["paths"]
    assert paths["/api/v1/vlls"]["get"]["security"] == [{"bearerToken": []}]
    assert paths["/api/v1/vlls"]["post"]["security"] == [{"bearerToken": ["order"]}, {"bearerToken": ["noc"]}]
    assert paths["/api/v1/vlls/validate"]["post"]["security"] == [{"bearerToken": []}]
    assert paths["/api/v1/invitations"]["post"]["security"] == [{"bearerToken": ["team"]}]
    assert paths["/api/v1/sites"]["get"]["security"] == [{"bearerToken": []}]
    assert paths["/api/v1/sites"]["post"]["security"] == [{"bearerToken": ["noc"]}]
    assert paths["/api/v1/routers"]["get"]["security"] == [{"bearerToken": ["noc"]}]
    assert paths["/api/v1/enroll"]["post"]["security"] == [{}]


def schemas(part: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of the document, with its place."""
    if isinstance(part, dict):
        if "type" in part or "oneOf" in part or "anyOf" in part:
            yield place, part
        for name, inner in part.items():
            if name not in ("example", "examples"):
                yield from schemas(inner, f"{place}/{name}")
    elif isinstance(part, list):
        for number, inner in enumerate(part):
            yield from schemas(inner, f"{place}/{number}")


def test_generators_of_clients_can_give_every_value_a_type() -> None:
    """oapi-codegen and ogen stop at the four mistakes here; `make check-clients` runs them."""
    components = document()["components"]
    for place, schema in schemas(document()):
        kinds = schema.get("type")
        if isinstance(kinds, list):
            assert len(set(kinds) - {"null"}) == 1, f"{place}: several types; use oneOf"
        if "const" in schema:
            assert "type" in schema, f"{place}: a constant without a type"
        choices = [each.get("type") for each in schema.get("oneOf", []) if "$ref" not in each]
        # A text and a word, such as a VLAN or "any", differ in type; two texts do not.
        assert len(choices) == len(set(choices)), f"{place}: two choices of one type"
    lowered = [name.lower() for kind in components.values() for name in kind]
    assert len(lowered) == len(set(lowered)), "a schema and a security scheme of one name"

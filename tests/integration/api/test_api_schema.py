"""The OpenAPI schema describes the API, its copy in docs/ is current, its page loads no third-party files."""

import sys
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

COPY = Path(__file__).parents[3] / "docs" / "openapi.yaml"
# Operations that are not repeatable, and the reasons.
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


def test_schema_is_openapi_3_1() -> None:
    assert document()["openapi"] == "3.1.0"
    validate_schema(document())


def test_generating_the_schema_does_not_search_for_gdal() -> None:
    assert document()["paths"]
    # Importing its package searches for GDAL with a compiler, for seconds in each process.
    assert "django.contrib.gis" not in sys.modules


def test_copy_in_docs_is_current() -> None:
    copy = yaml.load(COPY.read_text(), Loader=yaml.CSafeLoader)
    assert copy == document(), "run `make openapi` and commit docs/openapi.yaml"


@pytest.mark.parametrize("operation", operations())
def test_every_operation_is_described_and_has_valid_examples(operation: Any) -> None:
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


def test_no_request_waits_for_schema_generation() -> None:
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


def test_schema_names_the_required_scopes() -> None:
    paths = document()["paths"]
    assert paths["/api/v1/vlls"]["get"]["security"] == [{"bearerToken": []}]
    assert paths["/api/v1/vlls"]["post"]["security"] == [{"bearerToken": ["order"]}, {"bearerToken": ["noc"]}]
    assert paths["/api/v1/vlls/validate"]["post"]["security"] == [{"bearerToken": []}]
    assert paths["/api/v1/invitations"]["post"]["security"] == [{"bearerToken": ["team"]}]
    assert paths["/api/v1/sites"]["get"]["security"] == [{"bearerToken": []}]
    assert paths["/api/v1/sites"]["post"]["security"] == [{"bearerToken": ["noc"]}]
    assert paths["/api/v1/routers"]["get"]["security"] == [{"bearerToken": ["noc"]}]
    assert paths["/api/v1/enroll"]["post"]["security"] == [{}]


def test_old_paths_of_activation_tests_are_deprecated() -> None:
    paths = document()["paths"]
    for old, new in (("tests", "activation-tests"), ("tests/{test}", "activation-tests/{test}")):
        current, deprecated = paths[f"/api/v1/vlls/{{id}}/{new}"], paths[f"/api/v1/vlls/{{id}}/{old}"]
        assert set(deprecated) == set(current)
        for method in current:
            assert not current[method].get("deprecated")
            assert deprecated[method]["deprecated"]
            assert f"/{new}`" in deprecated[method]["description"]


def test_generated_clients_keep_the_names_of_the_old_paths() -> None:
    paths, components = document()["paths"], document()["components"]["schemas"]
    assert paths["/api/v1/vlls/{id}/tests"]["post"]["operationId"] == "vlls_tests_create"
    for old, new in (
        ("LineTest", "ActivationTest"),
        ("LineTestRequestRequest", "ActivationTestRequestRequest"),
    ):
        assert components[old]["properties"] == components[new]["properties"]


def schemas(part: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every schema of the document with its location."""
    if isinstance(part, dict):
        if "type" in part or "oneOf" in part or "anyOf" in part:
            yield place, part
        for name, inner in part.items():
            if name not in ("example", "examples"):
                yield from schemas(inner, f"{place}/{name}")
    elif isinstance(part, list):
        for number, inner in enumerate(part):
            yield from schemas(inner, f"{place}/{number}")


def test_client_generators_can_type_every_value() -> None:
    """oapi-codegen and ogen reject these four mistakes; `make check-clients` runs both generators."""
    components = document()["components"]
    for place, schema in schemas(document()):
        kinds = schema.get("type")
        if isinstance(kinds, list):
            assert len(set(kinds) - {"null"}) == 1, f"{place}: several types; use oneOf"
        if "const" in schema:
            assert "type" in schema, f"{place}: a constant without a type"
        choices = [each.get("type") for each in schema.get("oneOf", []) if "$ref" not in each]
        # A string and a keyword, such as a VLAN or "any", differ in type; two strings do not.
        assert len(choices) == len(set(choices)), f"{place}: two choices of one type"
    lowered = [name.lower() for kind in components.values() for name in kind]
    assert len(lowered) == len(set(lowered)), "a schema and a security scheme of one name"

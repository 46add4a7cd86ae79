"""No process can create, change or remove a row of the inventory without the rules of lines.

``portal.vll`` registers the rules when Django starts. Without them, every operation refuses to run. No other
code creates or deletes such rows.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from django.apps import apps
from django.db.models import Model

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.events.models import Event
from portal.inventory import operations, rules
from portal.inventory.models import BackboneLink, Port, Router, Site
from tests.integration.conftest import dairy, isp, nora
from tests.integration.isp import GBIT, Isp

__all__ = ["dairy", "isp", "nora"]

ROWS: dict[str, type[Model]] = {
    "site": Site,
    "router": Router,
    "link": BackboneLink,
    "customer": Customer,
    "port": Port,
}
OPERATIONS = [f"{kind}_{action}" for kind in ROWS for action in ("create", "change", "remove")]
# It undoes a retirement.
OTHERS = {"customer_return"}
CHANGES: dict[str, dict[str, Any]] = {
    "site": {"name": "Bern"},
    "router": {"cores": 2},
    "link": {"a_metric": 7},
    "customer": {"name": "Bakery"},
    "port": {"description": "rack 7"},
}
SOURCE = Path(__file__).resolve().parents[2]
WRITERS = {"create", "bulk_create", "get_or_create", "update_or_create", "delete", "raw_delete"}
MODELS = {model.__name__ for model in ROWS.values()}
WITH_RULES = {"portal/inventory/operations.py"}


def test_every_kind_of_row_has_three_operations() -> None:
    own = {
        name
        for name, each in vars(operations).items()
        if each.__class__ is FunctionType and each.__module__ == operations.__name__
    }
    assert {name for name in own if name.partition("_")[0] in ROWS} - OTHERS == set(OPERATIONS)


def test_the_start_of_django_registers_rules_for_every_kind_of_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_rules", {})
    apps.get_app_config("vll").ready()
    assert rules._rules.keys() == set(ROWS.values())


@pytest.mark.django_db
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_without_registered_rules_writes_nothing(
    name: str, isp: Isp, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, _, action = name.partition("_")
    BackboneLink.objects.update(in_service=False)
    arguments = _facts(kind, isp) if action == "create" else {kind: ROWS[kind]._default_manager.first()}
    arguments |= CHANGES[kind] if action == "change" else {}
    before, events = _rows(), Event.objects.count()
    monkeypatch.setattr(rules, "_rules", {})
    with pytest.raises(rules.RulesMissing):
        getattr(operations, name)(**arguments, user=nora, now=clock.now())
    assert (_rows(), Event.objects.count()) == (before, events)


def test_only_these_operations_create_or_delete_rows() -> None:
    modules = [path for app in ("portal", "provisioning") for path in (SOURCE / app).rglob("*.py")]
    writing = {
        str(path.relative_to(SOURCE))
        for path in modules
        if "migrations" not in path.parts and any(_writes(ast.parse(path.read_text())))
    }
    assert writing == WITH_RULES


def _rows() -> list[list[dict[str, Any]]]:
    return [list(model._default_manager.order_by("pk").values()) for model in ROWS.values()]


def _facts(kind: str, isp: Isp) -> dict[str, Any]:
    rhino, hippo = isp.routers["rhino"], isp.routers["hippo"]
    facts: dict[str, dict[str, Any]] = {
        "site": {"name": "Bern"},
        "router": {"name": "lynx", "site": rhino.site},
        "link": {"a_router": rhino, "a_interface": "x1", "z_router": hippo, "z_interface": "x1"},
        "customer": {"name": "Bakery"},
        "port": {"router": rhino, "interface": "x9", "speed_bps": GBIT},
    }
    return facts[kind]


def _writes(module: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that create an instance of one of the models, or create or delete rows."""
    imports = [node for node in ast.walk(module) if isinstance(node, ast.ImportFrom)]
    imported = {each.name for node in imports if ".models" in (node.module or "") for each in node.names}
    models = MODELS & imported
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            function = node.func
            is_instance = isinstance(function, ast.Name) and function.id in models
            writes = isinstance(function, ast.Attribute) and function.attr in WRITERS
            if is_instance or (writes and _root(function) in models):
                yield node


def _root(node: ast.AST) -> str:
    """Return the name with which a chain of calls begins: ``Port`` of ``Port.objects.filter().delete()``."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""

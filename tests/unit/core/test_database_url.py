"""DATABASE_URL: several hosts as in libpq, and error messages that name the mistake."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from devstack.folders import ROOT
from portal.core.environment import read_database_url


def read(url: str) -> dict[str, Any]:
    return read_database_url(url, variable="DATABASE_DIRECT_URL")


def test_several_hosts_are_tried_for_a_writable_one() -> None:
    found = read("postgres://lo:p%40ss@db1:5432,db2:5433,[2001:db8::3]:5432/longline")
    assert (found["USER"], found["PASSWORD"], found["NAME"]) == ("lo", "p@ss", "longline")
    assert (found["HOST"], found["PORT"]) == ("db1,db2,2001:db8::3", "5432,5433,5432")
    assert found["OPTIONS"]["target_session_attrs"] == "read-write"


def test_a_single_host_gets_limits_in_seconds() -> None:
    options = read("postgres://lo:pw@db1/longline")["OPTIONS"]
    assert "target_session_attrs" not in options
    assert options["connect_timeout"] == 3
    connect_timeout_s = (
        options["keepalives_idle"] + options["keepalives_count"] * options["keepalives_interval"]
    )
    assert connect_timeout_s < 15
    assert options["tcp_user_timeout"] < 10_000


def test_options_in_the_url_override_the_defaults() -> None:
    options = read(
        "postgres://lo@a,b/longline?target_session_attrs=any&connect_timeout=9&sslmode=verify-full"
    )
    assert {
        name: options["OPTIONS"][name] for name in ("target_session_attrs", "connect_timeout", "sslmode")
    } == {
        "target_session_attrs": "any",
        "connect_timeout": "9",
        "sslmode": "verify-full",
    }


@pytest.mark.parametrize(
    "url", ["postgres://lo:pw@%2Frun%2Fpostgresql/x", "postgres://lo:pw@/x?host=/run/postgresql"]
)
def test_a_folder_as_host_names_a_socket(url: str) -> None:
    assert read(url)["HOST"] == "/run/postgresql"


WRONG = {
    "mysql://lo:secret@db1/longline": "begin with postgres://",
    "db1/longline": "begin with postgres://",
    "postgres://lo:secret@db1": "names no database",
    "postgres://lo:secret@db1/longline?foo=1": 'invalid URI query parameter: "foo"',
    "postgres://lo:secret%zz@db1/longline": "libpq cannot read it",
    "postgres://lo:x@secret@db1/longline": "written %40",
    "postgres://lo:secret@db1:54x/longline": "a number from 1 to 65535",
    "postgres://lo:secret@db1:70000/longline": "a number from 1 to 65535",
    "postgres://lo:secret@a,b,c/longline?port=1,2": "3 hosts and 2 ports",
}


@pytest.mark.parametrize(("url", "why"), WRONG.items())
def test_an_invalid_url_is_refused_with_its_reason_and_without_its_password(url: str, why: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read(url)
    assert why in str(refused.value)
    assert str(refused.value).startswith("DATABASE_DIRECT_URL is not a PostgreSQL address: ")
    assert "secret" not in str(refused.value)


PRINT_ADDRESSES = """
import json
from portal import settings
default, direct = settings.DATABASES["default"], settings.DATABASE_DIRECT
print(json.dumps([
    default["DISABLE_SERVER_SIDE_CURSORS"], default["OPTIONS"]["prepare_threshold"], direct.get("HOST", ""),
]))
"""


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, [False, 3, ""]),
        ({"DATABASE_DIRECT_URL": "postgres://lo@db1,db2/x"}, [True, None, "db1,db2"]),
        ({"DATABASE_DIRECT_URL": "postgres://lo@db1/x", "DATABASE_PREPARE_AFTER": "5"}, [True, 5, "db1"]),
    ],
)
def test_a_direct_address_implies_a_pooler(environment: dict[str, str], expected: list[object]) -> None:
    printed = subprocess.run(
        [sys.executable, "-c", PRINT_ADDRESSES],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": "postgres://lo@pooler/x"} | environment,
        check=True,
        capture_output=True,
    )
    assert json.loads(printed.stdout) == expected

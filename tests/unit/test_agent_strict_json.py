"""Decoding what agents report."""

import pytest

from portal.api.agent.strict_json import Errors, address, prefixed_address


@pytest.mark.parametrize(
    ("decode", "text"), [(address, "fe80::1%eth0"), (prefixed_address, "fe80::1%eth0/64")]
)
def test_an_address_with_a_zone_is_refused_and_not_left_to_the_database(decode, text: str) -> None:
    errors = Errors()
    assert decode(text, "/address", errors) is None
    assert [error["code"] for error in errors] == ["type"]

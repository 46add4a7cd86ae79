"""Cells of imported tables: the notations of spreadsheets and people have one value or are refused."""

from decimal import Decimal
from typing import Any

import pytest

from portal.core.errors import DomainError
from portal.imports import cells
from portal.imports.cells import Reader

READ: list[tuple[Reader, str, Any]] = [
    (cells.whole, "10000000000", 10**10),
    (cells.whole, "007", 7),
    (cells.rate, "10000000000", 10**10),
    (cells.rate, "1.5G", 1_500_000_000),
    (cells.rate, "50 Mbps", 50_000_000),
    (cells.rate, "1,000,000", 10**6),
    (cells.rate, "1.000.000", 10**6),
    (cells.rate, "1'000'000", 10**6),
    (cells.rate, "0", 0),
    (cells.size, "9 000", 9000),
    (cells.size, "64 KiB", 65_536),
    (cells.degrees, "47.3769", Decimal("47.3769")),
    (cells.degrees, "-8,5417", Decimal("-8.5417")),
    (cells.yes_or_no, "TRUE", True),
    (cells.yes_or_no, "no", False),
    (cells.one_of("dot1q", "qinq"), "DOT1Q", "dot1q"),
    (cells.address(4), "10.255.0.1", "10.255.0.1"),
    (cells.address(6), "2001:DB8::0001", "2001:db8::1"),
    (cells.email, "dora@alpine.example", "dora@alpine.example"),
    (cells.https_url, "https://rhino.example.net:9443", "https://rhino.example.net:9443"),
    (cells.router_name, "rhino-1", "rhino-1"),
    (cells.port, "rhino:TenGigabitEthernet3/0/0", ("rhino", "TenGigabitEthernet3/0/0")),
    (cells.text(5), "Zürich"[:5], "Züric"),
]
REFUSED: list[tuple[Reader, str, str]] = [
    *(
        (cells.whole, text, "cell-not-a-number")
        for text in ("1E+10", "10.000", "-1", "1 G", "٣", str(2**53), "0" * 20 + "9" * 400)
    ),
    *((cells.rate, text, "quantity-ambiguous") for text in ("1.000", "1,000", "10,000 k", "50 MB/s")),
    *((cells.rate, text, "rate-unreadable") for text in ("-1", "1.5", "fast", "٣", "0" * 99)),
    *((cells.rate, text, "cell-not-a-number") for text in ("99999999999 G", "1E+10", "1,5E+09")),
    *((cells.size, text, "quantity-ambiguous") for text in ("9.000", "9,000", "64 kb")),
    *((cells.size, text, "size-unreadable") for text in ("1.5", "-1", "9000 bit")),
    *((cells.degrees, text, "cell-not-degrees") for text in ("north", "NaN", "1e9", "47.12345678", "1,2,3")),
    (cells.yes_or_no, "perhaps", "cell-not-yes-or-no"),
    (cells.one_of("uni", "enni"), "nni", "cell-not-one-of"),
    *((cells.address(4), text, "cell-not-an-address") for text in ("10.0.0.1/32", "10.0.0", "::1", "x")),
    *((cells.address(6), text, "cell-not-an-address") for text in ("10.0.0.1", "fe80::1%eth0")),
    (cells.email, "dora", "cell-not-an-email"),
    *((cells.https_url, text, "cell-not-a-url") for text in ("http://x.example", "rhino")),
    *((cells.router_name, text, "cell-not-a-router-name") for text in ("Rhino", "a_b", "a" * 64)),
    *((cells.port, text, "cell-not-a-port") for text in ("rhino", "rhino:", ":eth0", "rhino:eth 0")),
    (cells.text(5), "Zürich", "cell-text-too-long"),
    (cells.text(), "a\u202eb", "cell-not-plain"),
]


@pytest.mark.parametrize(("read", "text", "value"), READ)
def test_a_cell_has_one_value(read: Reader, text: str, value: Any) -> None:
    assert read(text, "column") == value


@pytest.mark.parametrize(("read", "text", "code"), REFUSED)
def test_an_invalid_cell_is_refused(read: Reader, text: str, code: str) -> None:
    with pytest.raises(DomainError) as refused:
        read(text, "column")
    assert (refused.value.code, refused.value.field) == (code, "column")

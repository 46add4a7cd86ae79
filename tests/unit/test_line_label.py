"""Labels of lines: in the form that LibreNMS reads, and never more than an ifAlias holds."""

from uuid import UUID

import pytest

from portal.core.line_label import LONGEST, line_label

VLL = UUID("6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01")


@pytest.mark.parametrize(
    ("description", "customer", "label"),
    [
        ("Office to mine", "ACME", "Cust: ACME (Office to mine) {6f0b2c52}"),
        ("", "ACME", "Cust: ACME {6f0b2c52}"),
        ("Groß-Gerau – Köln", "Bäckerei Müßig", "Cust: Backerei Mussig (Gross-Gerau - Koln) {6f0b2c52}"),
        ("x) [10G] {y", "A(B)", "Cust: A B (x 10G y) {6f0b2c52}"),
        ("two\nlines\x1b[2J", "東京", "Cust: ?? (two lines? 2J) {6f0b2c52}"),
        ("d" * 100, "c" * 100, f"Cust: {'c' * 20} ({'d' * 24}) {{6f0b2c52}}"),
    ],
)
def test_a_label_names_customer_line_and_id(description: str, customer: str, label: str) -> None:
    assert line_label(VLL, description=description, customer=customer) == label
    assert len(label) <= LONGEST

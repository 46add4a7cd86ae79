"""Labels of lines: the format that LibreNMS reads, and never longer than an ifAlias."""

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioning.intent_rows import LONGEST, line_label

VLL = UUID("6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01")


@pytest.mark.parametrize(
    ("description", "customer", "label"),
    [
        ("Office to mine", "ACME", "Cust: ACME (Office to mine) {6f0b2c52}"),
        ("", "ACME", "Cust: ACME {6f0b2c52}"),
        ("Groß-Gerau – Köln", "Bäckerei Müßig", "Cust: Backerei Mussig #17 (Gross-Gerau - Koln) {6f0b2c52}"),
        ("x) [10G] {y", "A(B)", "Cust: A B #17 (x 10G y) {6f0b2c52}"),
        ("two\nlines\x1b[2J", "東京", "Cust: Customer #17 (two lines? 2J) {6f0b2c52}"),
        ("東京 – 大阪", "東京 Tower", "Cust: Tower #17 {6f0b2c52}"),
        ("d" * 100, "c" * 100, f"Cust: {'c' * 16} #17 ({'d' * 24}) {{6f0b2c52}}"),
    ],
)
def test_a_label_names_customer_line_and_id(description: str, customer: str, label: str) -> None:
    assert line_label(VLL, description=description, customer=customer, customer_id=17) == label
    assert len(label) <= LONGEST


def shown_customer(name: str, number: int) -> str:
    """Return the customer that LibreNMS shows: the label from the first colon up to the first bracket."""
    label = line_label(VLL, description="x" * 100, customer=name, customer_id=number)
    assert len(label) <= LONGEST
    assert label.isascii()
    assert label.isprintable()
    kind, customer = re.split(r"[\[({]", label)[0].split(":")[:2]
    assert kind == "Cust"
    return customer.strip().casefold()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Transcontinental Fibre North", "Transcontinental Fibre South"),
        ("東京", "大阪"),
        ("Кабель", "Волокно"),
        ("東京 Tower", "大阪 Tower"),
        ("Bäckerei Müßig", "Backerei Mussig"),
        ("ACME: North", "ACME: South"),
        ("ACME (North)", "ACME (South)"),
        ("ACME", "ACME (South)"),
        ("A B", "A  B"),
        ("Tower #2", "東京 Tower"),
        ("Customer", "東京"),
        ("Customer #2", "東京"),
    ],
)
def test_two_customers_have_different_names_in_labels(one: str, other: str) -> None:
    assert shown_customer(one, 1) != shown_customer(other, 2)
    # All lines of one customer belong to the same customer.
    assert shown_customer(one, 1) == shown_customer(one, 1)


@given(one=st.text(min_size=1, max_size=100), other=st.text(min_size=1, max_size=100))
def test_different_names_of_customers_are_never_the_same(one: str, other: str) -> None:
    if one.casefold() != other.casefold():
        assert shown_customer(one, 1) != shown_customer(other, 2**31)

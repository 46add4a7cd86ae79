"""User names that differ in case alone are one name."""

import pytest

from portal.accounts.errors import UsernameTaken
from portal.accounts.invitations import account_make


@pytest.mark.parametrize("other", ["ΝΙΚΟΣ", "νικοσ", "Νικος"])
def test_a_letter_with_two_small_forms_makes_no_other_name(db: None, other: str) -> None:
    """PostgreSQL makes a σ of every Σ, and Python a ς of one that ends a word."""
    account_make(username="νικος", email="", password=None)
    with pytest.raises(UsernameTaken):
        account_make(username=other, email="", password=None)

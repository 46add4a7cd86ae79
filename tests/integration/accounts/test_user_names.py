"""User names that differ in case alone: an upgrade stops before the constraint would, and names them."""

from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import CommandError
from django.db import connection

from portal.accounts.errors import UsernameTaken
from portal.accounts.models import User
from portal.accounts.new_account import account_make

pytestmark = pytest.mark.django_db
migration = import_module("portal.accounts.migrations.0008_one_user_per_name")


@pytest.fixture
def before(db: None) -> None:
    """The table of an earlier release."""
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX one_user_per_name")


def test_twins_are_named_with_what_to_do(before: None, alice: User) -> None:
    for name in ("Alice", "ZOE", "zoe", "bert", "ΝΙΚΟΣ", "νικος"):
        User.objects.create_user(name)
    with pytest.raises(CommandError) as refusal:
        migration.stop_at_twins(apps, None)
    said = str(refusal.value)
    assert "differ in case alone: Alice and alice; ZOE and zoe; ΝΙΚΟΣ and νικος." in said
    assert "bert" not in said
    assert "UPDATE accounts_user SET username = 'Alice-2' WHERE username = 'Alice';" in said


def test_without_twins_it_goes_on(before: None, alice: User) -> None:
    migration.stop_at_twins(apps, None)


@pytest.mark.parametrize("other", ["ΝΙΚΟΣ", "νικοσ", "Νικος"])
def test_a_letter_with_two_small_forms_makes_no_other_name(db: None, other: str) -> None:
    """PostgreSQL makes a σ of every Σ, and Python a ς of one that ends a word."""
    account_make(username="νικος", email="", password=None)
    with pytest.raises(UsernameTaken):
        account_make(username=other, email="", password=None)

"""Two workers that get the same message do not do the same batch."""

import psycopg
import pytest
from django.db import connection

from portal.accounts.models import User
from portal.core import clock
from portal.imports.batches import batch_run
from portal.inventory.models import Site
from tests.integration.imports.files import staged, work

pytestmark = pytest.mark.django_db(transaction=True)


def test_while_one_is_at_a_batch_the_other_does_nothing(nora: User) -> None:
    this = staged(nora, "sites", "name\nBern\n", at_once=True)
    mine = {name: connection.settings_dict[name.upper()] for name in ("host", "port", "user", "password")}
    with psycopg.connect(**mine, dbname=connection.settings_dict["NAME"]) as other:
        other.execute("SELECT FROM imports_import WHERE id = %s FOR NO KEY UPDATE", [this.pk])
        assert not batch_run(import_id=this.pk, now=clock.now())
        assert not Site.objects.exists()
    assert work(this).made == 1

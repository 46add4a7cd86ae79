"""Nina runs the NOC: she may remove what Nora may only change."""

import pytest

from portal.accounts.models import User


@pytest.fixture
def nina(db: None) -> User:
    return User.objects.create_user("nina", password="correct horse battery", noc_role="nocAdmin")

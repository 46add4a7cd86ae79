"""What NetBox said, within a sentence of the portal's."""

import pytest

from portal.netbox_sync.user_messages import error_sentence


@pytest.mark.parametrize("detail", ["Invalid token", "Invalid token."])
def test_a_message_of_netbox_ends_before_the_next_sentence_begins(detail: str) -> None:
    said = error_sentence({"code": "token_refused", "facts": {"status": 403, "detail": detail}})
    assert said.startswith("NetBox does not accept the token (403): Invalid token. Set NETBOX_TOKEN")

"""NetBox's error message within a sentence of the portal."""

import pytest

from portal.netbox_sync.netbox_status import error_sentence


@pytest.mark.parametrize("detail", ["Invalid token", "Invalid token."])
def test_netboxs_message_ends_before_the_next_sentence(detail: str) -> None:
    sentence = error_sentence({"code": "token_refused", "facts": {"status": 403, "detail": detail}})
    assert sentence.startswith("NetBox does not accept the token (403): Invalid token. Set NETBOX_TOKEN")

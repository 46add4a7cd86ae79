"""The header for responses with a secret or a new certificate. It forbids caches to store such responses.

Source: RFC 9111, section 5.2.2.5.
"""

NO_STORE = {"Cache-Control": "no-store"}

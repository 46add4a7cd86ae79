"""The header of responses that contain a secret or a new certificate: no cache may store them.

Source: RFC 9111, section 5.2.2.5.
"""

NO_STORE = {"Cache-Control": "no-store"}

"""The authentication methods in the schema."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class BearerTokenScheme(OpenApiAuthenticationExtension):
    target_class = "portal.api.rest.authentication.BearerTokenAuthentication"
    # Generators of Go clients name a type after this name. "token" would collide with the schema "Token".
    name = "bearerToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token, such as `ll_0123456789ab_…`; it acts as the user who created it.",
        }

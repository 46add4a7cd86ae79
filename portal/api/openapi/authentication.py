"""The ways to sign requests, for the schema."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class BearerTokenScheme(OpenApiAuthenticationExtension):
    target_class = "portal.api.v1.authentication.BearerTokenAuthentication"
    # Not "token": Go generators name a type after it, next to the schema "Token".
    name = "bearerToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token, such as `ll_0123456789ab_…`; it acts as the user who made it.",
        }

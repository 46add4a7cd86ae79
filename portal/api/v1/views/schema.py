"""The schema of the API, for programs."""

from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.openapi.document import document


class SchemaView(APIView):
    """The OpenAPI 3.1 document. It contains no secrets and is public."""

    permission_classes = [AllowAny]
    schema = None

    def get(self, request: Request) -> Response:
        return Response(document())

"""The topics that an open page may follow. The live process turns the response into a stream."""

from django.http import Http404, HttpResponse

from portal.accounts import permissions
from portal.live.topics import BadTopics, Followed, UnknownLine, follow
from portal.web.page_guard import SignedInRequest, requires


class Following(HttpResponse):
    """A response with status 204. From a web process it ends an EventSource permanently, and the page polls.

    The live process reads ``followed`` and ``user_id`` from it, and streams.
    """

    status_code = 204

    def __init__(self, *, followed: Followed, user_id: int) -> None:
        super().__init__()
        self.followed = followed
        self.user_id = user_id


@requires(permissions.may_sign_in)
def live(request: SignedInRequest) -> HttpResponse:
    """Accept ``?about=`` once for each topic.

    400 without a topic, 404 for a line outside the reader's scope.
    """
    try:
        followed = follow(request.user, request.GET.getlist("about"))
    except BadTopics as reason:
        return HttpResponse(f"{reason}\n", status=400, content_type="text/plain; charset=utf-8")
    except UnknownLine:
        raise Http404 from None
    return Following(followed=followed, user_id=request.user.pk)

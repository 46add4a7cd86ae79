"""The check of the topics that an open page wants to follow, before the live process sends a stream."""

from django.http import Http404, HttpResponse

from portal.accounts import permissions
from portal.live.topics import BadTopics, Followed, UnknownLine, follow
from portal.web.page.page_guard import SignedInRequest, requires


class Following(HttpResponse):
    """A response with the topics that a page follows.

    The live process reads ``followed`` and ``user_id``, and sends a stream instead. If a web process sends
    the response, the status 204 ends the browser's EventSource permanently, and the page polls.
    """

    status_code = 204

    def __init__(self, *, followed: Followed, user_id: int) -> None:
        super().__init__()
        self.followed = followed
        self.user_id = user_id


@requires(permissions.may_sign_in)
def live(request: SignedInRequest) -> HttpResponse:
    """Check the topics in ``?about=``, which occurs once for each topic.

    The status is 400 if the topics are not valid, and 404 if the user may not see one of the lines.
    """
    try:
        followed = follow(request.user, request.GET.getlist("about"))
    except BadTopics as reason:
        return HttpResponse(f"{reason}\n", status=400, content_type="text/plain; charset=utf-8")
    except UnknownLine:
        raise Http404 from None
    return Following(followed=followed, user_id=request.user.pk)

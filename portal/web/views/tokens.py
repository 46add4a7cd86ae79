"""The pages for the user's own API tokens."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from portal.accounts import permissions
from portal.accounts.errors import TooManyTokens
from portal.accounts.tokens import token_create, tokens_of
from portal.audit.provenance import made_with, token_revoke_with
from portal.core import clock
from portal.web.forms.tokens import TokenForm
from portal.web.page_guard import SignedInRequest, proves_identity, requires
from portal.web.pagination import newest_first


@requires(permissions.may_sign_in)
@proves_identity
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: SignedInRequest) -> HttpResponse:
    """Show the user's tokens (GET), or create a token (POST).

    Only the response to the POST shows the token's plain text.
    """
    form, secret, status = TokenForm(user=request.user), "", None
    if request.method == "POST":
        posted = TokenForm(request.POST, user=request.user)
        now = clock.now()
        if posted.is_valid():
            try:
                _token, secret = token_create(user=request.user, now=now, **posted.wanted(now))
            except TooManyTokens as error:
                posted.add_error(None, error.sentence)
        if not secret:
            form, status = posted, 422
    page = newest_first(tokens_of(request.user), by="created_at", after=request.GET.get("after", ""))
    context = {
        "page": page,
        "form": form,
        "to_make": form.is_bound or not page.rows,
        "secret": secret,
        "now": clock.now(),
    }
    return render(request, "tokens/tokens.html", context, status=status)


@requires(permissions.may_sign_in)
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: SignedInRequest, token_id: int) -> HttpResponse:
    """Show the objects that were created with a token (GET), or revoke the token (POST).

    A POST also ends the objects that the user has ticked.
    """
    token, now = get_object_or_404(tokens_of(request.user), pk=token_id), clock.now()
    made = made_with(token, viewer=request.user, now=now)
    if request.method != "POST":
        return render(request, "tokens/revoke.html", {"token": token, "made": made})
    token_revoke_with(token=token, ending=made.chosen(request.POST.getlist("end")), now=now)
    messages.success(request, _("The token is revoked."))
    return redirect("web:tokens")

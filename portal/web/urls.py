"""The pages people see."""

from django.urls import include, path

from portal.web.views import (
    holds,
    invitation,
    lists,
    order,
    overview,
    routers,
    search,
    team,
    tokens,
    vll,
    vll_months,
    vll_orders,
)

app_name = "web"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("search/", search.search, name="search"),
    path("ports/", lists.ports, name="ports"),
    path("orders/", lists.orders, name="orders"),
    path("orders/new/", order.order, name="order"),
    path("orders/new/check/", order.check, name="order-check"),
    path("orders/new/ports/", order.ports, name="order-ports"),
    path("orders/new/hold/", holds.while_ordering, name="order-hold"),
    path("holds/", holds.holds, name="holds"),
    path("holds/<uuid:hold_id>/renew/", holds.renew, name="hold-renew"),
    path("holds/<uuid:hold_id>/release/", holds.release, name="hold-release"),
    path("vlls/<uuid:vll_id>/", vll.page, name="vll"),
    path("vlls/<uuid:vll_id>/status/", vll.status, name="vll-status"),
    path("vlls/<uuid:vll_id>/months/", vll_months.months, name="vll-months"),
    path("vlls/<uuid:vll_id>/remove/", vll.remove, name="vll-remove"),
    path("vlls/<uuid:vll_id>/change/", vll_orders.change, name="vll-change"),
    path("vlls/<uuid:vll_id>/suspend/", vll_orders.suspend, name="vll-suspend"),
    path("vlls/<uuid:vll_id>/resume/", vll_orders.resume, name="vll-resume"),
    path("vlls/<uuid:vll_id>/restore/", vll_orders.restore, name="vll-restore"),
    path("vlls/<uuid:vll_id>/cancel/", vll_orders.cancel, name="vll-cancel"),
    path("vlls/<uuid:vll_id>/retry/", vll_orders.retry, name="vll-retry"),
    path("team/", team.teams, name="teams"),
    path("team/<int:customer_id>/", team.page, name="team"),
    path("team/<int:customer_id>/invite/", team.invite, name="invite"),
    path("team/<int:customer_id>/members/<int:membership_id>/role/", team.change_role, name="member-role"),
    path("team/<int:customer_id>/members/<int:membership_id>/remove/", team.remove, name="member-remove"),
    path(
        "team/<int:customer_id>/invitations/<int:invitation_id>/revoke/",
        team.revoke,
        name="invitation-revoke",
    ),
    path("invitations/<str:signed>/", invitation.invitation, name="invitation"),
    path("account/tokens/", tokens.tokens, name="tokens"),
    path("account/tokens/<int:token_id>/revoke/", tokens.revoke, name="token-revoke"),
    path("noc/", include("portal.web.urls_noc")),
    path("routers/", routers.routers, name="routers"),
]

"""The addresses of the portal's pages."""

from django.urls import include, path

from portal.web import command_palette, documentation, lists, overview, port_page, search, webhooks
from portal.web.account import account, notifications, tokens
from portal.web.lines import activation_tests, diagnosis, line_changes, line_page
from portal.web.noc.adoption import adoption_views
from portal.web.orders import new_order, reservations
from portal.web.page import live_topics, provider
from portal.web.team import team

app_name = "web"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("live/", live_topics.live, name="live"),
    path("search/", search.search, name="search"),
    path("palette/", command_palette.palette, name="palette"),
    path("docs/", documentation.documentation, name="documentation"),
    path("docs/<path:path>", documentation.documentation, name="documentation"),
    path("shortcuts/", command_palette.shortcuts, name="shortcuts"),
    path("ports/", lists.ports, name="ports"),
    path("ports/<int:port_id>/", port_page.page, name="port"),
    path("orders/", lists.orders, name="orders"),
    path("orders/new/", new_order.order, name="order"),
    path("orders/new/check/", new_order.check, name="order-check"),
    path("orders/new/ports/", new_order.ports, name="order-ports"),
    path("orders/new/hold/", reservations.while_ordering, name="order-reservation"),
    path("holds/", reservations.reservations, name="reservations"),
    path("holds/<uuid:reservation_id>/renew/", reservations.renew, name="reservation-renew"),
    path("holds/<uuid:reservation_id>/release/", reservations.release, name="reservation-release"),
    path("vlls/<uuid:vll_id>/", line_page.page, name="vll"),
    path("vlls/<uuid:vll_id>/status/", line_page.status, name="vll-status"),
    path("vlls/<uuid:vll_id>/diagnosis/", diagnosis.page, name="diagnosis"),
    path("vlls/<uuid:vll_id>/diagnosis/report/", diagnosis.report, name="trouble-report"),
    path("vlls/<uuid:vll_id>/months/", line_page.months, name="vll-months"),
    path("vlls/<uuid:vll_id>/test/", activation_tests.ask, name="vll-test"),
    path("vlls/<uuid:vll_id>/tests/<uuid:test_id>/", activation_tests.certificate, name="activation-test"),
    path(
        "vlls/<uuid:vll_id>/tests/<uuid:test_id>/call-off/",
        activation_tests.call_off,
        name="activation-test-call-off",
    ),
    path("vlls/<uuid:vll_id>/remove/", line_changes.remove, name="vll-remove"),
    path("vlls/<uuid:vll_id>/change/", line_changes.change, name="vll-change"),
    path("vlls/<uuid:vll_id>/change/check/", line_changes.change_check, name="vll-change-check"),
    path("vlls/<uuid:vll_id>/bandwidth/", line_changes.bandwidth, name="vll-bandwidth"),
    path("vlls/<uuid:vll_id>/let-go/", adoption_views.let_go, name="vll-let-go"),
    path("vlls/<uuid:vll_id>/suspend/", line_changes.suspend, name="vll-suspend"),
    path("vlls/<uuid:vll_id>/resume/", line_changes.resume, name="vll-resume"),
    path("vlls/<uuid:vll_id>/restore/", line_changes.restore, name="vll-restore"),
    path("vlls/<uuid:vll_id>/cancel/", line_changes.cancel, name="vll-cancel"),
    path("vlls/<uuid:vll_id>/retry/", line_changes.retry, name="vll-retry"),
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
    path("invitations/<str:signed>/", team.invitation, name="invitation"),
    path("account/", account.page, name="account"),
    path("account/language/", account.language, name="account-language"),
    path("account/email/", account.email, name="email-change"),
    path("account/email/confirm/<str:signed>/", account.email_confirm, name="email-change-confirm"),
    path("account/tokens/", tokens.tokens, name="tokens"),
    path("account/tokens/<int:token_id>/revoke/", tokens.revoke, name="token-revoke"),
    path("webhooks/", webhooks.webhooks, name="webhooks"),
    path("webhooks/add/", webhooks.add, name="webhook-add"),
    path("webhooks/<int:webhook_id>/", webhooks.page, name="webhook"),
    path("webhooks/<int:webhook_id>/change/", webhooks.change, name="webhook-change"),
    path("webhooks/<int:webhook_id>/secret/", webhooks.rotate, name="webhook-rotate"),
    path("webhooks/<int:webhook_id>/test/", webhooks.test, name="webhook-test"),
    path("webhooks/<int:webhook_id>/disable/", webhooks.disable, name="webhook-disable"),
    path("webhooks/<int:webhook_id>/enable/", webhooks.enable, name="webhook-enable"),
    path("webhooks/<int:webhook_id>/remove/", webhooks.remove, name="webhook-remove"),
    path("webhooks/deliveries/<uuid:delivery_id>/again/", webhooks.redeliver, name="webhook-redeliver"),
    path("account/notifications/", notifications.notifications, name="notifications"),
    path("unsubscribe/<str:signed>/", notifications.unsubscribe, name="unsubscribe"),
    path("provider/logo/<slug:digest>/", provider.logo, name="provider-logo"),
    path("provider/style/<slug:digest>/", provider.style, name="provider-style"),
    path("noc/", include("portal.web.urls_noc")),
    path("routers/", lists.routers, name="routers"),
]

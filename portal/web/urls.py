"""The addresses of the portal's pages."""

from django.urls import URLPattern, include, path

from portal.web import documentation, lists_and_search, overview, port_page, webhooks
from portal.web.account import account, tokens
from portal.web.lines import activation_tests, diagnosis, line_changes, line_page
from portal.web.noc import history, imports, netbox, orders, staff, wall_and_pools
from portal.web.noc.adoption import found_lines
from portal.web.noc.alarms import alarm_views
from portal.web.noc.inventory import customers, inventory_views
from portal.web.noc.inventory.inventory_kinds import KINDS, Kind
from portal.web.noc.map import network_map
from portal.web.noc.routers import router_drain, router_views
from portal.web.orders import new_order
from portal.web.page import live, provider
from portal.web.team import team


def _pages_of(kind: Kind) -> list[URLPattern]:
    slug, the_kind, row = kind.slug, {"kind": kind}, f"<int:{kind.keyword}_id>"
    return [
        path(f"{slug}/{row}/history/", history.history, the_kind, name=f"noc-{slug}-history"),
        path(f"{slug}/", inventory_views.listing, the_kind, name=f"noc-{slug}"),
        path(f"{slug}/add/", inventory_views.create, the_kind, name=f"noc-{slug}-add"),
        path(f"{slug}/{row}/change/", inventory_views.change, the_kind, name=f"noc-{slug}-change"),
        path(f"{slug}/{row}/remove/", inventory_views.remove, the_kind, name=f"noc-{slug}-remove"),
    ]


_NOC_PAGES = [
    path("", alarm_views.overview, name="noc"),
    path("wall/", wall_and_pools.wall, name="noc-wall"),
    path("alarms/history/", alarm_views.alarm_history, name="noc-alarm-history"),
    path("alarms/<uuid:alarm_id>/", alarm_views.page, name="noc-alarm"),
    path("alarms/<uuid:alarm_id>/acknowledge/", alarm_views.acknowledge, name="noc-alarm-acknowledge"),
    path("alarms/<uuid:alarm_id>/unacknowledge/", alarm_views.unacknowledge, name="noc-alarm-unacknowledge"),
    path("alarms/<uuid:alarm_id>/assign/", alarm_views.assign, name="noc-alarm-assign"),
    path("alarms/<uuid:alarm_id>/silence/", alarm_views.silence, name="noc-alarm-silence"),
    path("alarms/<uuid:alarm_id>/unsilence/", alarm_views.unsilence, name="noc-alarm-unsilence"),
    path("map/", network_map.page, name="noc-map"),
    path("netbox/", netbox.page, name="noc-netbox"),
    path("netbox/run/", netbox.run, name="noc-netbox-run"),
    path("pools/", wall_and_pools.pool_page, name="noc-pools"),
    path("found-lines/", found_lines.listing, name="noc-found-lines"),
    path("found-lines/adopt/", found_lines.adopt_several, name="noc-adopt-several"),
    path("found-lines/adopt/sheet.csv", found_lines.sheet, name="noc-adoption-sheet"),
    path("found-lines/<int:circuit_id>/adopt/", found_lines.adopt, name="noc-adopt"),
    path("imports/", imports.listing, name="noc-imports"),
    path("imports/templates/<slug:kind>.csv", imports.csv_template, name="noc-import-template"),
    path("imports/<uuid:import_id>/", imports.page, name="noc-import"),
    path("imports/<uuid:import_id>/errors.csv", imports.errors, name="noc-import-errors"),
    path("imports/<uuid:import_id>/begin/", imports.begin, name="noc-import-begin"),
    path("imports/<uuid:import_id>/cancel/", imports.cancel, name="noc-import-cancel"),
    path("trouble/", diagnosis.listing, name="noc-trouble"),
    path("trouble/<uuid:report_id>/close/", diagnosis.close, name="trouble-close"),
    path("audit/", history.page, name="noc-audit"),
    path("orders/", orders.orders_pending_approval, name="noc-orders"),
    path("orders/<uuid:order_id>/", orders.page, name="noc-order"),
    path("orders/<uuid:order_id>/plan/", orders.plan, name="noc-order-plan"),
    path("orders/<uuid:order_id>/approve/", orders.approve, name="noc-order-approve"),
    path("orders/<uuid:order_id>/reject/", orders.reject, name="noc-order-reject"),
    path("orders/<uuid:order_id>/force-retry/", orders.force_retry, name="noc-order-force-retry"),
    path("orders/<uuid:order_id>/force-end/", orders.force_end, name="noc-order-force-end"),
    *(page for kind in KINDS for page in _pages_of(kind)),
    path("customers/<int:customer_id>/", customers.page, name="noc-customer"),
    path("customers/<int:customer_id>/lines/", customers.lines, name="noc-customer-lines"),
    path("customers/<int:customer_id>/reopen/", customers.reopen, name="noc-customer-reopen"),
    path("interfaces/", inventory_views.interfaces, name="noc-interfaces"),
    path("suggest/<str:of>/", inventory_views.suggest, name="noc-suggest"),
    path("staff/", staff.staff, name="noc-staff"),
    path("staff/add/", staff.add, name="noc-staff-add"),
    path("people/<int:user_id>/", staff.person, name="noc-person"),
    path("people/<int:user_id>/role/", staff.role, name="noc-person-role"),
    path("people/<int:user_id>/close/", staff.close, name="noc-person-close"),
    path("people/<int:user_id>/reopen/", staff.reopen, name="noc-person-reopen"),
    path("people/<int:user_id>/second-factor/", staff.second_factor, name="noc-person-second-factor"),
    path("people/<int:user_id>/history/", history.person, name="noc-person-history"),
    path("webhooks/<int:webhook_id>/history/", history.webhook, name="noc-webhook-history"),
    path("routers/<int:router_id>/", router_views.page, name="noc-router"),
    path("routers/<int:router_id>/freeze/", router_views.freeze, name="noc-router-freeze"),
    path(
        "routers/<int:router_id>/rebuild/<uuid:vll_id>/<str:side>/",
        router_views.rebuild,
        name="noc-router-rebuild",
    ),
    path("routers/<int:router_id>/actions/", router_views.actions, name="noc-router-actions"),
    path("routers/<int:router_id>/drain/", router_drain.page, name="noc-router-drain"),
    path("routers/<int:router_id>/calibration/", router_views.calibration, name="noc-router-calibration"),
    path("routers/<int:router_id>/enrolment/", router_views.enrolment, name="noc-router-enrolment"),
    path("routers/<int:router_id>/dead/", router_views.dead, name="noc-router-dead"),
    path("routers/<int:router_id>/revoke/", router_views.revoke, name="noc-router-revoke"),
]

app_name = "web"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("live/", live.live, name="live"),
    path("search/", lists_and_search.search, name="search"),
    path("palette/", lists_and_search.palette, name="palette"),
    path("docs/", documentation.documentation, name="documentation"),
    path("docs/<path:path>", documentation.documentation, name="documentation"),
    path("shortcuts/", lists_and_search.shortcuts, name="shortcuts"),
    path("ports/", lists_and_search.ports, name="ports"),
    path("ports/<int:port_id>/", port_page.page, name="port"),
    path("orders/", lists_and_search.orders, name="orders"),
    path("orders/new/", new_order.order, name="order"),
    path("orders/new/check/", new_order.check, name="order-check"),
    path("orders/new/ports/", new_order.ports, name="order-ports"),
    path("orders/new/hold/", new_order.while_ordering, name="order-reservation"),
    path("holds/", new_order.reservations, name="reservations"),
    path("holds/<uuid:reservation_id>/renew/", new_order.renew, name="reservation-renew"),
    path("holds/<uuid:reservation_id>/release/", new_order.release, name="reservation-release"),
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
    path("vlls/<uuid:vll_id>/let-go/", found_lines.let_go, name="vll-let-go"),
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
    path("account/notifications/", account.notifications, name="notifications"),
    path("unsubscribe/<str:signed>/", account.unsubscribe, name="unsubscribe"),
    path("provider/logo/<slug:digest>/", provider.logo, name="provider-logo"),
    path("provider/style/<slug:digest>/", provider.style, name="provider-style"),
    path("noc/", include(_NOC_PAGES)),
    path("routers/", lists_and_search.routers, name="routers"),
]

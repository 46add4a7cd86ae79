"""The addresses of the NOC's pages, below /noc/."""

from django.urls import URLPattern, path

from portal.web.lines import diagnosis
from portal.web.noc import history, imports, netbox, orders, overview, staff
from portal.web.noc.adoption import adoption_views, found_lines
from portal.web.noc.alarms import alarm_views
from portal.web.noc.inventory import customers, inventory_views
from portal.web.noc.inventory.inventory_kinds import KINDS, Kind
from portal.web.noc.map import map_views
from portal.web.noc.routers import router_drain, router_views


def _pages_of(kind: Kind) -> list[URLPattern]:
    slug, the_kind, row = kind.slug, {"kind": kind}, f"<int:{kind.keyword}_id>"
    return [
        path(f"{slug}/{row}/history/", history.history, the_kind, name=f"noc-{slug}-history"),
        path(f"{slug}/", inventory_views.listing, the_kind, name=f"noc-{slug}"),
        path(f"{slug}/add/", inventory_views.create, the_kind, name=f"noc-{slug}-add"),
        path(f"{slug}/{row}/change/", inventory_views.change, the_kind, name=f"noc-{slug}-change"),
        path(f"{slug}/{row}/remove/", inventory_views.remove, the_kind, name=f"noc-{slug}-remove"),
    ]


urlpatterns = [
    path("", overview.overview, name="noc"),
    path("wall/", overview.wall, name="noc-wall"),
    path("alarms/history/", alarm_views.alarm_history, name="noc-alarm-history"),
    path("alarms/<uuid:alarm_id>/", alarm_views.page, name="noc-alarm"),
    path("alarms/<uuid:alarm_id>/acknowledge/", alarm_views.acknowledge, name="noc-alarm-acknowledge"),
    path("alarms/<uuid:alarm_id>/unacknowledge/", alarm_views.unacknowledge, name="noc-alarm-unacknowledge"),
    path("alarms/<uuid:alarm_id>/assign/", alarm_views.assign, name="noc-alarm-assign"),
    path("alarms/<uuid:alarm_id>/silence/", alarm_views.silence, name="noc-alarm-silence"),
    path("alarms/<uuid:alarm_id>/unsilence/", alarm_views.unsilence, name="noc-alarm-unsilence"),
    path("map/", map_views.page, name="noc-map"),
    path("netbox/", netbox.page, name="noc-netbox"),
    path("netbox/run/", netbox.run, name="noc-netbox-run"),
    path("pools/", overview.pool_page, name="noc-pools"),
    path("found-lines/", found_lines.listing, name="noc-found-lines"),
    path("found-lines/adopt/", adoption_views.adopt_several, name="noc-adopt-several"),
    path("found-lines/adopt/sheet.csv", adoption_views.sheet, name="noc-adoption-sheet"),
    path("found-lines/<int:circuit_id>/adopt/", adoption_views.adopt, name="noc-adopt"),
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

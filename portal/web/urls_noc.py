"""The NOC's pages, below /noc/."""

from django.urls import URLPattern, path

from portal.web.inventory_kinds import KINDS, Kind
from portal.web.views import (
    diagnosis,
    noc_audit,
    noc_autocomplete,
    noc_customer,
    noc_drain,
    noc_history,
    noc_inventory,
    noc_map,
    noc_netbox,
    noc_orders,
    noc_overview,
    noc_pools,
    noc_quarantine,
    noc_router,
    noc_staff,
    noc_trouble,
)


def _pages_of(kind: Kind) -> list[URLPattern]:
    slug, the_kind, row = kind.slug, {"kind": kind}, f"<int:{kind.keyword}_id>"
    return [
        path(f"{slug}/{row}/history/", noc_history.history, the_kind, name=f"noc-{slug}-history"),
        path(f"{slug}/", noc_inventory.listing, the_kind, name=f"noc-{slug}"),
        path(f"{slug}/add/", noc_inventory.create, the_kind, name=f"noc-{slug}-add"),
        path(f"{slug}/{row}/change/", noc_inventory.change, the_kind, name=f"noc-{slug}-change"),
        path(f"{slug}/{row}/remove/", noc_inventory.remove, the_kind, name=f"noc-{slug}-remove"),
    ]


urlpatterns = [
    path("", noc_overview.overview, name="noc"),
    path("map/", noc_map.page, name="noc-map"),
    path("netbox/", noc_netbox.page, name="noc-netbox"),
    path("netbox/run/", noc_netbox.run, name="noc-netbox-run"),
    path("pools/", noc_pools.page, name="noc-pools"),
    path("quarantine/", noc_quarantine.listing, name="noc-quarantines"),
    path("quarantine/<int:quarantine_id>/", noc_quarantine.page, name="noc-quarantine"),
    path("quarantine/<int:quarantine_id>/accept/", noc_quarantine.accept, name="noc-quarantine-accept"),
    path("quarantine/<int:quarantine_id>/discard/", noc_quarantine.discard, name="noc-quarantine-discard"),
    path("trouble/", noc_trouble.listing, name="noc-trouble"),
    path("trouble/<uuid:report_id>/close/", diagnosis.close, name="trouble-close"),
    path("audit/", noc_audit.page, name="noc-audit"),
    path("orders/", noc_orders.held_orders, name="noc-orders"),
    path("orders/<uuid:order_id>/", noc_orders.page, name="noc-order"),
    path("orders/<uuid:order_id>/plan/", noc_orders.plan, name="noc-order-plan"),
    path("orders/<uuid:order_id>/approve/", noc_orders.approve, name="noc-order-approve"),
    path("orders/<uuid:order_id>/reject/", noc_orders.reject, name="noc-order-reject"),
    path("orders/<uuid:order_id>/force-retry/", noc_orders.force_retry, name="noc-order-force-retry"),
    path("orders/<uuid:order_id>/force-end/", noc_orders.force_end, name="noc-order-force-end"),
    *(page for kind in KINDS for page in _pages_of(kind)),
    path("customers/<int:customer_id>/", noc_customer.page, name="noc-customer"),
    path("customers/<int:customer_id>/lines/", noc_customer.lines, name="noc-customer-lines"),
    path("customers/<int:customer_id>/reopen/", noc_customer.reopen, name="noc-customer-reopen"),
    path("interfaces/", noc_autocomplete.interfaces, name="noc-interfaces"),
    path("suggest/<str:of>/", noc_autocomplete.suggest, name="noc-suggest"),
    path("staff/", noc_staff.staff, name="noc-staff"),
    path("staff/add/", noc_staff.add, name="noc-staff-add"),
    path("people/<int:user_id>/", noc_staff.person, name="noc-person"),
    path("people/<int:user_id>/role/", noc_staff.role, name="noc-person-role"),
    path("people/<int:user_id>/close/", noc_staff.close, name="noc-person-close"),
    path("people/<int:user_id>/reopen/", noc_staff.reopen, name="noc-person-reopen"),
    path("people/<int:user_id>/second-factor/", noc_staff.second_factor, name="noc-person-second-factor"),
    path("people/<int:user_id>/history/", noc_history.person, name="noc-person-history"),
    path("webhooks/<int:webhook_id>/history/", noc_history.webhook, name="noc-webhook-history"),
    path("routers/<int:router_id>/", noc_router.page, name="noc-router"),
    path("routers/<int:router_id>/actions/", noc_router.actions, name="noc-router-actions"),
    path("routers/<int:router_id>/drain/", noc_drain.page, name="noc-router-drain"),
    path("routers/<int:router_id>/calibration/", noc_router.calibration, name="noc-router-calibration"),
    path("routers/<int:router_id>/enrolment/", noc_router.enrolment, name="noc-router-enrolment"),
    path("routers/<int:router_id>/dead/", noc_router.dead, name="noc-router-dead"),
    path("routers/<int:router_id>/revoke/", noc_router.revoke, name="noc-router-revoke"),
]

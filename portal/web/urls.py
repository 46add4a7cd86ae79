"""The pages people see."""

from django.urls import path

from portal.web.views import lists, order, overview, routers, vll

app_name = "web"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("ports/", lists.ports, name="ports"),
    path("orders/", lists.orders, name="orders"),
    path("orders/new/", order.order, name="order"),
    path("vlls/<uuid:vll_id>/", vll.page, name="vll"),
    path("vlls/<uuid:vll_id>/status/", vll.status, name="vll-status"),
    path("vlls/<uuid:vll_id>/remove/", vll.remove, name="vll-remove"),
    path("routers/", routers.routers, name="routers"),
]

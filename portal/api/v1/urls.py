"""Version 1 of the JSON door, below /api/v1/."""

from django.urls import path

from portal.api.v1.views import enrol, history, inventory, jobs, orders, schema, tokens, vlls

app_name = "api-v1"
urlpatterns = [
    path("schema", schema.SchemaView.as_view(), name="schema"),
    path("vlls", vlls.VllsView.as_view(), name="vlls"),
    path("vlls/<uuid:pk>", vlls.VllView.as_view(), name="vll"),
    path("vlls/<uuid:pk>/history", history.VllHistoryView.as_view(), name="history"),
    path("vlls/<uuid:pk>/throughput", vlls.ThroughputView.as_view(), name="throughput"),
    path("orders", orders.OrdersView.as_view(), name="orders"),
    path("orders/<uuid:pk>", orders.OrderView.as_view(), name="order"),
    path("jobs/<uuid:pk>", jobs.JobView.as_view(), name="job"),
    path("tokens", tokens.TokensView.as_view(), name="tokens"),
    path("tokens/<int:pk>", tokens.TokenView.as_view(), name="token"),
    path("ports", inventory.PortsView.as_view(), name="ports"),
    path("ports/<int:pk>", inventory.PortView.as_view(), name="port"),
    path("enroll", enrol.EnrolView.as_view(), name="enroll"),
    path("sites", inventory.SitesView.as_view(), name="sites"),
    path("sites/<int:pk>", inventory.SiteView.as_view(), name="site"),
    path("routers", inventory.RoutersView.as_view(), name="routers"),
    path("routers/<int:pk>", inventory.RouterView.as_view(), name="router"),
    path("links", inventory.LinksView.as_view(), name="links"),
    path("links/<int:pk>", inventory.LinkView.as_view(), name="link"),
    path("customers", inventory.CustomersView.as_view(), name="customers"),
    path("customers/<int:pk>", inventory.CustomerView.as_view(), name="customer"),
    path("vni-ranges", inventory.VniRangesView.as_view(), name="vni-ranges"),
    path("vni-ranges/<int:pk>", inventory.VniRangeView.as_view(), name="vni-range"),
]

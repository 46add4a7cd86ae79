"""Version 1 of the JSON door, below /api/v1/."""

from django.urls import path

from portal.api.v1.views import inventory, jobs, orders, schema, tokens, vlls

app_name = "api-v1"
urlpatterns = [
    path("schema", schema.SchemaView.as_view(), name="schema"),
    path("vlls", vlls.VllsView.as_view(), name="vlls"),
    path("vlls/<uuid:pk>", vlls.VllView.as_view(), name="vll"),
    path("vlls/<uuid:pk>/throughput", vlls.ThroughputView.as_view(), name="throughput"),
    path("orders", orders.OrdersView.as_view(), name="orders"),
    path("orders/<uuid:pk>", orders.OrderView.as_view(), name="order"),
    path("jobs/<uuid:pk>", jobs.JobView.as_view(), name="job"),
    path("tokens", tokens.TokensView.as_view(), name="tokens"),
    path("tokens/<int:pk>", tokens.TokenView.as_view(), name="token"),
    path("ports", inventory.PortsView.as_view(), name="ports"),
    path("ports/<int:pk>", inventory.PortView.as_view(), name="port"),
    path("sites", inventory.SitesView.as_view(), name="sites"),
    path("routers", inventory.RoutersView.as_view(), name="routers"),
    path("links", inventory.LinksView.as_view(), name="links"),
]

"""Version 1 of the JSON door, below /api/v1/."""

from django.urls import path

from portal.api.v1 import views

app_name = "api-v1"
urlpatterns = [
    path("vlls", views.VllsView.as_view(), name="vlls"),
    path("vlls/<uuid:pk>", views.VllView.as_view(), name="vll"),
    path("vlls/<uuid:pk>/throughput", views.ThroughputView.as_view(), name="throughput"),
    path("orders", views.OrdersView.as_view(), name="orders"),
    path("orders/<uuid:pk>", views.OrderView.as_view(), name="order"),
    path("ports", views.PortsView.as_view(), name="ports"),
    path("sites", views.SitesView.as_view(), name="sites"),
    path("routers", views.RoutersView.as_view(), name="routers"),
    path("links", views.LinksView.as_view(), name="links"),
]

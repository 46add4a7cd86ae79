"""The pages people see."""

from django.contrib.auth import views as auth
from django.urls import path

from portal.web.access import public
from portal.web.views import lists, order, overview, routers, vll

app_name = "web"
urlpatterns = [
    path("login/", public(auth.LoginView.as_view(template_name="accounts/login.html")), name="login"),
    path("logout/", public(auth.LogoutView.as_view()), name="logout"),
    path("", overview.overview, name="overview"),
    path("ports/", lists.ports, name="ports"),
    path("orders/", lists.orders, name="orders"),
    path("orders/new/", order.order, name="order"),
    path("vlls/<uuid:vll_id>/", vll.page, name="vll"),
    path("vlls/<uuid:vll_id>/status/", vll.status, name="vll-status"),
    path("vlls/<uuid:vll_id>/remove/", vll.remove, name="vll-remove"),
    path("routers/", routers.routers, name="routers"),
]

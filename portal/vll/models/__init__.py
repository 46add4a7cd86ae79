from portal.vll.models.activation_test import ActivationTest
from portal.vll.models.attempt import Attempt, EndMove, RouterConvergence, TombstoneTunnel, VllTombstone
from portal.vll.models.order import Order, PlanResult, Reservation
from portal.vll.models.tunnel_path import TunnelPath
from portal.vll.models.vll import ForwardedLinkLoss, Vll, VllEnd

__all__ = [
    "ActivationTest",
    "Attempt",
    "EndMove",
    "ForwardedLinkLoss",
    "Order",
    "PlanResult",
    "Reservation",
    "RouterConvergence",
    "TombstoneTunnel",
    "TunnelPath",
    "Vll",
    "VllEnd",
    "VllTombstone",
]

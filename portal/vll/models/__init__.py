from portal.vll.models.activation_test import ActivationTest
from portal.vll.models.attempt import Attempt, RouterConvergence
from portal.vll.models.forwarded_link_loss import ForwardedLinkLoss
from portal.vll.models.order import Order
from portal.vll.models.plan_result import PlanResult
from portal.vll.models.reservation import Reservation
from portal.vll.models.tombstone import EndMove, TombstoneTunnel, VllTombstone
from portal.vll.models.tunnel_path import TunnelPath
from portal.vll.models.vll import Vll, VllEnd

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

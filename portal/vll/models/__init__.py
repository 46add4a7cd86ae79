from portal.vll.models.attempt import Attempt, RouterConvergence
from portal.vll.models.order import Order
from portal.vll.models.vll import Vll, VllEnd

__all__ = ["Attempt", "Order", "RouterConvergence", "Vll", "VllEnd"]

"""All writes to VLLs and orders. Every write is in a transaction, and no function uses the network."""

from portal.vll.operations.activation_test_lifecycle import activation_tests_resend
from portal.vll.operations.activation_test_on_demand import (
    activation_test_call_off,
    activation_test_order,
    activation_test_schedule,
    activation_tests_give_up,
    scheduled_activation_tests_begin,
)
from portal.vll.operations.add_line import order_add
from portal.vll.operations.adopt_line import Adoption, line_adopt, lines_adopt
from portal.vll.operations.line_removal import (
    agreed_cooling_off,
    coolings_off_end,
    dead_routers_settle,
    line_let_go,
    order_delete,
    order_restore,
)
from portal.vll.operations.link_loss_forwarding import link_losses_forward
from portal.vll.operations.modify_line import order_modify, order_resume, order_suspend, vll_describe
from portal.vll.operations.order_approval import (
    order_approve,
    order_reject,
    plan_finish,
    plan_request,
    plans_resend,
)
from portal.vll.operations.order_endings import order_cancel, order_force_end, order_force_retry
from portal.vll.operations.order_progress import (
    answers_take,
    attempt_record,
    attempts_forget,
    orders_overdue_alarm,
)
from portal.vll.operations.order_record import similar_orders_of
from portal.vll.operations.paths import tunnel_paths_keep
from portal.vll.operations.reservations import (
    reservation_make,
    reservation_release,
    reservation_renew,
    reservations_expire,
)
from portal.vll.operations.retry_order import order_retry

__all__ = [
    "Adoption",
    "activation_test_call_off",
    "activation_test_order",
    "activation_test_schedule",
    "activation_tests_give_up",
    "activation_tests_resend",
    "agreed_cooling_off",
    "answers_take",
    "attempt_record",
    "attempts_forget",
    "coolings_off_end",
    "dead_routers_settle",
    "line_adopt",
    "line_let_go",
    "lines_adopt",
    "link_losses_forward",
    "order_add",
    "order_approve",
    "order_cancel",
    "order_delete",
    "order_force_end",
    "order_force_retry",
    "order_modify",
    "order_reject",
    "order_restore",
    "order_resume",
    "order_retry",
    "order_suspend",
    "orders_overdue_alarm",
    "plan_finish",
    "plan_request",
    "plans_resend",
    "reservation_make",
    "reservation_release",
    "reservation_renew",
    "reservations_expire",
    "scheduled_activation_tests_begin",
    "similar_orders_of",
    "tunnel_paths_keep",
    "vll_describe",
]

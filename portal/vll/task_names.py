"""The tasks of provisioning, by the names that Celery knows: all that the portal knows of them."""

CONVERGE_ROUTER = "provisioning.converge_router"
# The same by workers of their own, for a router that probably does not answer.
CONVERGE_DOUBTFUL = "provisioning.converge_doubtful_router"
ADOPT_GENERATION = "provisioning.adopt_agent_generation"
PLAN_ORDER = "provisioning.plan_order"
TEST_LINE = "provisioning.test_line"
KEEP_TUNNEL_PATHS = "provisioning.keep_tunnel_paths"
TIME_PATHS = "provisioning.time_paths"
TIME_PATHS_OF = "provisioning.time_paths_of"
SWEEP = "provisioning.sweep"
MARK_STALE = "provisioning.mark_stale"
FREE_HOLDS = "provisioning.free_holds"

"""Two routers whose paths are probed every few seconds: real VPPs, or stand-ins where these cannot."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from devstack.folders import RUN
from devstack.isp import small_isp
from devstack.routers.vpp_network import VppDataplane
from devstack.routers.vppsim import SimulatedDataplane
from devstack.stack import Stack
from tests.lab.abilities import Ability
from tests.lab.conftest import Lab, running_lab
from tests.stacks import simulated

# The portal queries agents that report every second about their probes every 10 s.
SETTINGS = {"LONGLINE_PROBE_EVERY_S": "10"}
_shown = pytest.StashKey[bool]()
_PATHS = "SELECT * FROM vll_tunnelpath WHERE in_use"


@dataclass(frozen=True, slots=True)
class Probed:
    stack: Stack
    lab: Lab | None = None

    def needs(self, ability: Ability) -> None:
        """Skip the test on a release of VPP that lacks the ability; stand-ins have every ability."""
        if self.lab is not None:
            self.lab.needs(ability)

    def path(self) -> dict[str, Any]:
        """Return the path between both routers as the portal has it, or {} if it is not probed."""
        url = self.stack.portal.services.database_url
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as database:
            return database.execute(_PATHS).fetchone() or {}

    @contextmanager
    def backbone_that_carries(self, mtu: int) -> Iterator[None]:
        """Drop larger IP packets between both routers for the block; neither router can know."""
        dataplane = self.stack.dataplane
        if isinstance(dataplane, SimulatedDataplane):
            file = dataplane.folder / "hippo" / "vppsim.json"
            before = file.read_text()
            file.write_text(json.dumps(json.loads(before) | {"links": {"mtu": mtu}}))
            try:
                yield
            finally:
                file.write_text(before)
            return
        assert isinstance(dataplane, VppDataplane)
        with dataplane.narrow(mtu):
            yield


@pytest.fixture(scope="package", params=["real VPP", "vppsim"])
def probed(request: pytest.FixtureRequest) -> Iterator[Probed]:
    if request.param == "vppsim":
        if request.config.stash.get(_shown, False):
            pytest.skip("shown on real VPPs")
        with simulated(small_isp(), logs=RUN / "log" / "path_probes", settings=SETTINGS) as stack:
            yield Probed(stack)
    else:
        with running_lab(request.config, settings=SETTINGS) as lab:
            request.config.stash[_shown] = lab.can(Ability.ACTIVATION_TESTS)
            yield Probed(lab.stack, lab)

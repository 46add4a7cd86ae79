"""Run the simulation of `make scale`. The environment sets its size and duration (drills/scale/size.py)."""

import asyncio
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import redis

from devstack.release_code import code_here
from drills.scale import netbox, upkeep
from drills.scale.installation import installed
from drills.scale.report import figures
from drills.scale.samples import Samples
from drills.scale.simulation import Simulation
from drills.scale.size import Size


def main() -> int:
    # After SIGTERM, the simulation still prints the measurements.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        size = Size.read()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    began = time.monotonic()

    def note(text: str) -> None:
        print(f"# {time.monotonic() - began:.0f} s: {text}", flush=True)

    note(f"{code_here()}; {size}; {os.cpu_count()} processors, which the simulation shares")
    with tempfile.TemporaryDirectory(prefix="longline-scale-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        with (
            netbox.netbox_of(routers=size.routers, customers=size.customers),
            installed(size, folder) as installation,
        ):
            note("the network is in the database")
            with (
                psycopg.connect(installation.services.database_url, autocommit=True) as database,
                redis.Redis.from_url(installation.services.redis_url) as broker,
            ):
                simulation = Simulation(size, installation, Samples(database, broker, {}))
                try:
                    asyncio.run(simulation.run(note))
                except KeyboardInterrupt:
                    note("cut short; what was measured until now:")
                for line in figures(simulation):
                    print(line, flush=True)
            installation.family.stop()
            for figures_of in (netbox.figures, upkeep.figures):
                for line in figures_of(installation.services.database_url):
                    print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

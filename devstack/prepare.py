"""Prepare tables, certificates and rows in one process: `python -m devstack.prepare <JSON>`.

The argument is {"agent_urls": {"rhino": "https://..."}, "extra_ports": ["memif1/0"], "pki": "<folder>"}. The
program prints the result of `devstack.load.load`.
"""

import io
import json
import sys
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command

from devstack.isp import ALPINE_DAIRY, Port, small_isp
from devstack.process import LOOPBACK


def prepare(*, agent_urls: dict[str, str], extra_ports: list[str], pki: Path) -> dict[str, Any]:
    from devstack.load import load
    from portal.core.clock import now

    _run("migrate", verbosity=0)
    _run("pki", "init", "--dir", str(pki))
    _run("pki", "issue", "--dir", str(pki), "--role", "portal", "--dns", "localhost", "--ip", LOOPBACK)
    isp = small_isp(extra_ports=tuple(Port(interface=name, customer=ALPINE_DAIRY) for name in extra_ports))
    loaded = load(isp, agent_urls=agent_urls, now=now())
    # The rows must exist before the certificates, because a certificate is registered with its router.
    for name in agent_urls:
        _run("pki", "issue", "--dir", str(pki), "--role", "router", "--name", name, "--ip", LOOPBACK)
    return loaded


def _run(command: str, *arguments: str, **options: object) -> None:
    """Run a management command without its output, because standard output is for the result."""
    call_command(command, *arguments, stdout=io.StringIO(), **options)


def main(argument: str) -> None:
    django.setup()
    options = json.loads(argument)
    loaded = prepare(
        agent_urls=options["agent_urls"], extra_ports=options["extra_ports"], pki=Path(options["pki"])
    )
    json.dump(loaded, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])

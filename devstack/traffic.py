"""A customer that sends: `python -m devstack.traffic NAMESPACE --vlan 100 --rate-bps 5000000`.

It sends frames at an even rate, and no program receives them. For traffic in both directions, run one sender
at each end.
"""

import argparse
import secrets
import time

from devstack.frames import HEADER, TAG, Tag, Wire, frame
from devstack.vpp_network import UNI
from portal.core.errors import DomainError
from portal.core.quantities import whole_rate

FRAME_BYTES = 1400
# Seconds between wake-ups. Each wake-up sends several frames, so that a coarse timer does not change the
# rate.
BURST_S = 0.02


def send_forever(wire: Wire, content: bytes, *, rate_bps: float) -> None:
    started, sent = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - started) * rate_bps / (len(content) * 8))
        for _ in range(due - sent):
            wire.send(content)
        sent = max(sent, due)
        time.sleep(BURST_S)


def _rate(text: str) -> int:
    try:
        return whole_rate(text)
    except DomainError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespace")
    parser.add_argument("--vlan", type=int, required=True)
    parser.add_argument("--rate-bps", type=_rate, required=True, help="5000000, or with a unit: 5M")
    options = parser.parse_args()
    content = frame(
        destination=bytes.fromhex("ffffffffffff"),
        source=b"\x02" + secrets.token_bytes(5),
        tags=[Tag(options.vlan)],
        payload=secrets.token_bytes(FRAME_BYTES - HEADER - TAG),
    )
    with Wire(options.namespace, UNI) as wire:
        send_forever(wire, content, rate_bps=options.rate_bps)


if __name__ == "__main__":
    main()

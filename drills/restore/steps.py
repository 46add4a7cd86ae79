"""The drill's output: a line for each step, with its seconds and what was found, and broken promises."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Step:
    """``found``: what is to be told of it. ``broken``: sentences about what was promised and is not so."""

    name: str
    found: str = ""
    broken: list[str] = field(default_factory=list)

    def require(self, kept: bool, otherwise: str) -> None:
        """Note a promise that is broken; the drill goes on, and fails in the end."""
        if not kept:
            self.broken.append(otherwise)


@dataclass
class Steps:
    broken: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        step = Step(name)
        began = time.monotonic()
        yield step
        print(f"restore {name} {time.monotonic() - began:.1f} s {step.found}", flush=True)
        for sentence in step.broken:
            print(f"restore {name} BROKEN {sentence}", flush=True)
        self.broken += step.broken

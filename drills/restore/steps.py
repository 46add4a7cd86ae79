"""The output of the drill: for each step one row with its duration and results, and one row for each broken
promise.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Step:
    """A step. ``found`` is the text of its results. ``broken`` has a sentence for each broken promise."""

    name: str
    found: str = ""
    broken: list[str] = field(default_factory=list)

    def require(self, kept: bool, sentence: str) -> None:
        """Record a broken promise unless ``kept`` is true. The drill continues, and fails at the end."""
        if not kept:
            self.broken.append(sentence)


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

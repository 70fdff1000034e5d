"""State of a campaign: a file per target and seed, written after each block of mutants, so that a run can go on."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .outcomes import Outcome

BLOCK = 500  # mutants of one piece of work
_KEPT = 5  # mutants listed per group of equal failures
FOLDER = Path(__file__).parent / "state"


@dataclass
class Failure:
    """A group of equal failures: their count, the first mutants, and one traceback."""

    kind: str
    where: str
    text: str
    count: int = 0
    numbers: list[int] = field(default_factory=list)


@dataclass
class State:
    """The outcomes of a target and seed so far. `done`: indices of finished blocks. `reached`: the mutants of `counted`
    in which a kernel ran; states of older runs lack both."""

    target: str
    seed: int
    counts: dict[str, int] = field(default_factory=dict)
    done: list[int] = field(default_factory=list)
    seconds: float = 0.0  # summed over the children
    reached: int = 0
    counted: int = 0
    failures: list[Failure] = field(default_factory=list)

    def add(self, block: int, outcomes: list[tuple[int, Outcome]], seconds: float) -> None:
        """Add the outcomes of a block."""
        self.counts = dict(Counter(self.counts) + Counter(outcome.kind for _, outcome in outcomes))
        self.done = sorted([*self.done, block])
        self.seconds += seconds
        self.reached += sum(outcome.reached for _, outcome in outcomes)
        self.counted += len(outcomes)
        for number, outcome in outcomes:
            if outcome.is_failure:
                self._add_failure(number, outcome)

    def unfinished_blocks(self, mutants: int) -> list[tuple[int, int, int]]:
        """The unfinished blocks up to so many mutants: index, first mutant, end."""
        done, last = set(self.done), -(-mutants // BLOCK)
        return [(b, b * BLOCK, (b + 1) * BLOCK) for b in range(last) if b not in done]

    def _add_failure(self, number: int, outcome: Outcome) -> None:
        same = (f for f in self.failures if (f.kind, f.where) == (outcome.kind, outcome.where))
        failure = next(same, None)
        if failure is None:
            failure = Failure(outcome.kind, outcome.where, outcome.text)
            self.failures.append(failure)
        failure.count += 1
        failure.numbers = sorted([*failure.numbers, number])[:_KEPT]


def path_of(folder: Path, target: str, seed: int) -> Path:
    return folder / f"{target}-{seed}.json"


def load(path: Path) -> State:
    content = json.loads(path.read_text("utf-8"))
    return State(**{**content, "failures": [Failure(**failure) for failure in content["failures"]]})


def save(state: State, path: Path) -> None:
    """Write a state; the file is whole at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}.tmp")
    aside.write_text(json.dumps(asdict(state), indent=1), "utf-8")
    aside.replace(path)

"""A campaign: mutants of some targets, in several children at a time, until there are enough."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from . import state
from .child import Child, Ended
from .outcomes import FAILURES, MEMORY, TIMEOUT, Outcome
from .state import State

_MOST_RUNS = 10_000  # mutants of one child: leaks stay bounded


class Crew:
    """The children of a campaign, one for each thread that asks."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._all: list[Child] = []

    def block(self, target: str, seed: int, first: int, stop: int) -> list[tuple[int, Outcome]]:
        """The outcomes of mutants [first, stop). A mutant that was late or took too much memory is judged again in a
        new child, whose answer counts: the machine may have been busy."""
        outcomes = []
        for number, outcome in self._outcomes(target, seed, first, stop):
            if outcome.kind in (TIMEOUT, MEMORY):
                self._retire()
                ((_, outcome),) = self._outcomes(target, seed, number, number + 1)
                self._retire()
            outcomes.append((number, outcome))
        return outcomes

    def close(self) -> None:
        for child in self._all:
            child.close()

    def _outcomes(self, target: str, seed: int, first: int, stop: int) -> Iterator[tuple[int, Outcome]]:
        while first < stop:
            child = self._child()
            try:
                for number, outcome in child.run(target, seed, first, stop):
                    first = number + 1
                    yield number, outcome
                    if child is not getattr(self._own, "child", None):
                        break  # retired: another child goes on
            except Ended as end:
                self._retire()
                first += 1
                yield first - 1, end.outcome

    def _child(self) -> Child:
        child: Child | None = getattr(self._own, "child", None)
        if child is not None and child.runs > _MOST_RUNS:
            self._retire()
            child = None
        if child is None:
            child = self._own.child = Child()
            self._all.append(child)
        return child

    def _retire(self) -> None:
        child = getattr(self._own, "child", None)
        if child is not None:
            self._all.remove(child)
            child.close()
            self._own.child = None


def run(targets: Iterable[str], seed: int, mutants: int, jobs: int, folder: Path, *, resume: bool) -> list[State]:
    """Run mutants 0 to `mutants` of each target, and keep their state in the folder."""
    states = []
    for target in targets:
        path = state.path_of(folder, target, seed)
        current = state.load(path) if resume and path.exists() else State(target, seed)
        _run(current, mutants, jobs, path)
        states.append(current)
    return states


def _run(current: State, mutants: int, jobs: int, path: Path) -> None:
    crew, blocks = Crew(), iter(current.unfinished_blocks(mutants))
    done = sum(current.counts.values())

    def work(block: int, first: int, stop: int) -> tuple[int, list[tuple[int, Outcome]], float]:
        began = time.monotonic()
        return block, crew.block(current.target, current.seed, first, stop), time.monotonic() - began

    try:
        with tqdm(total=max(mutants, done), initial=done, unit="", desc=current.target) as bar, \
                ThreadPoolExecutor(jobs) as pool:
            running = {pool.submit(work, *block) for block in islice(blocks, jobs)}
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(work, *block) for block in islice(blocks, len(ended))}
                for future in ended:
                    block, outcomes, seconds = future.result()
                    current.add(block, outcomes, seconds)
                    bar.update(len(outcomes))
                bar.set_postfix(_brief(current.counts))
                state.save(current, path)
    finally:
        crew.close()


def _brief(counts: dict[str, int]) -> dict[str, int]:
    """Results, typed errors together, and each kind of failure."""
    brief = Counter({"result": counts.get("result", 0)})
    for kind, count in counts.items():
        brief[kind if kind in FAILURES or kind == "result" else "typed"] += count * (kind != "result")
    return dict(brief)

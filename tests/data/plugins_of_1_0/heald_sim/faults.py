"""Faults that are planted: the n-th call of a kind fails, or each with a probability."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from heald.api import errors

KINDS = ("allocate", "copy", "launch", "lost")
Strike = Callable[[], bool]  # asked once a call: whether this one fails


class Faults:
    """What is to fail on one device. Each specification draws from a sequence of its own: none moves another."""

    def __init__(self, specifications: tuple[str, ...], seed: str) -> None:
        self._seed = seed
        self._strikes: dict[str, list[Strike]] = {kind: [] for kind in KINDS}
        for specification in specifications:
            self.add(specification)

    def add(self, specification: str) -> None:
        """Count from now on. Raises InvalidArgument."""
        kind, _, when = specification.partition(":")
        if kind not in KINDS:
            raise _unreadable(specification)
        self._strikes[kind].append(_nth(specification, when) if when.isdecimal() else self._random(specification, when))

    def strikes(self, *kinds: str) -> str | None:
        """The first of these kinds that strikes the call that is being made, or None."""
        struck = [kind for kind in kinds for strike in self._strikes[kind] if strike()]
        return struck[0] if struck else None

    def _random(self, specification: str, when: str) -> Strike:
        try:
            probability = float(when)
        except ValueError:
            raise _unreadable(specification) from None
        if not 0 <= probability <= 1:
            raise _unreadable(specification)
        random = Random(f"{self._seed} {specification}").random  # noqa: S311 - to be repeated, not to be secret
        return lambda: random() < probability


def _nth(specification: str, when: str) -> Strike:
    left = int(when)
    if left < 1:
        raise _unreadable(specification)

    def strike() -> bool:
        nonlocal left
        left -= 1
        return left == 0

    return strike


def _unreadable(specification: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(
        f"'{specification}' names no fault", hint=f"write '<kind>:<n>' for the n-th call or '<kind>:<probability>', "
                                                  f"0.0 to 1.0; kinds: {', '.join(KINDS)}")

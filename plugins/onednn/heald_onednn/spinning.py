"""The time that waiting threads spin: long while the cores are this process's own, short beside other work.

The library's threads are OpenMP's, of GNU. A thread that waits for work spins, and sleeps when it found none for a
while. A sleeping thread is woken late: after a pause, on a virtual machine, each parallel region of a run waits for it.
A spinning thread takes a core from others, and from the thread that it waits for. Therefore threads spin SPINS times,
and hardly at all while the kernel takes cores from this process.

libgomp reads its environment once. Its manual states a switch that acts later, under GOMP_SPINCOUNT: threads spin
briefly while there are more OpenMP threads than cores. A team that waits for nothing, held by a Python thread, turns
this switch, and its end turns it back.

MobileNetV2 on two cores of a virtual machine, median ms; beside a busy process the switch is turned after a while:

    spins                        1000   10,000   this switch
    run follows run              1.8       1.8           1.8
    after a pause of 0.1 s       7      2.8-12           2.9, with `team`
    beside a busy process        6.4       6.0           3.6
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection
from time import monotonic
from typing import Any

from .team import keep_off_this_core

try:
    import resource
except ImportError:  # not on Windows, which has no such library either
    resource = None  # type: ignore[assignment]

SPINS = 10_000  # about 0.1 ms; libgomp spins 100 times behind the switch
LOOK_SECONDS = 0.05  # between two looks at the switches of context
SIGNS = 10  # involuntary switches between two looks: alone a process has up to 5, beside a busy one more than 17
LOOKS = 3  # with signs, one after the other: after a pause two threads of a process may share a core for a while
MOST_CALLERS = 1000
CALM_SECONDS = 1.0  # without signs, until threads spin long again
# The same at most. Throttled kernels may leave the other process a core, and so see no signs: each time that the signs
# are back at once, the calm has to last twice as long.
LONGEST_CALM_SECONDS = 16.0
RELAPSE_SECONDS = 0.5  # after the end of a throttled time


class SpinSwitch:
    """The switch, and its policy. `due`: the time of the next look, for callers to compare with `monotonic()`.

    `callers`: the threads that have looked, by their identity, and the ids of the threads that help each of them. A
    look keeps these off its caller's core. `find_helpers` runs in a thread that looks for the first time:
    it knows them as the threads that a first parallel region starts.
    """

    def __init__(
        self, start_team: Callable[[], Any], switches: Callable[[], int], now: Callable[[], float] = monotonic,
        find_helpers: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self._start_team, self._switches, self._now, self._find_helpers = start_team, switches, now, find_helpers
        self._lock = threading.Lock()
        self._forget()
        os.register_at_fork(before=self._forget_helpers, after_in_child=self._forget)

    def _forget_helpers(self) -> None:
        """The library ends its threads before a fork."""
        self.callers: dict[int, Collection[int]] = {}

    def _forget(self) -> None:
        """Begin as a process without a team: a child does not have the threads of its parent."""
        self._forget_helpers()
        self.due, self._seen, self._crowded_at = self._now() + LOOK_SECONDS, self._switches(), 0.0
        self._looks_with_signs = 0
        self._calm_seconds, self._relaxed_at = CALM_SECONDS, float("-inf")
        self._release: threading.Event | None = None

    @property
    def is_throttled(self) -> bool:
        return self._release is not None

    def look(self) -> None:
        """Turn the switch as the last moments say. One of several threads looks."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            keep_off_this_core(self._helpers())
            now, seen = self._now(), self._switches()
            has_signs = seen - self._seen >= SIGNS and now < self.due + LOOK_SECONDS
            self.due, self._seen = now + LOOK_SECONDS, seen
            self._looks_with_signs = self._looks_with_signs + 1 if has_signs else 0
            if has_signs:
                self._crowded_at = now
                if self._release is None and self._looks_with_signs >= LOOKS:
                    self._throttle()
            elif self._release is not None and now > self._crowded_at + self._calm_seconds:
                self._release.set()
                self._release, self._relaxed_at = None, now
        finally:
            self._lock.release()

    def _helpers(self) -> Collection[int]:
        caller = threading.get_ident()
        if caller not in self.callers:
            if len(self.callers) >= MOST_CALLERS:  # of threads that have ended, mostly
                self.callers.clear()
            self.callers[caller] = self._find_helpers()
        return self.callers[caller]

    def _throttle(self) -> None:
        is_relapse = self._now() < self._relaxed_at + RELAPSE_SECONDS
        self._calm_seconds = min(2 * self._calm_seconds, LONGEST_CALM_SECONDS) if is_relapse else CALM_SECONDS
        release = self._release = threading.Event()

        def hold_team() -> None:
            self._start_team()
            while not release.wait(CALM_SECONDS) and not self._is_idle(release):
                pass

        threading.Thread(target=hold_team, name="heald-onednn-throttle", daemon=True).start()

    def _is_idle(self, release: threading.Event) -> bool:
        """Turn the switch back where no call looks any more. Returns True if so."""
        with self._lock:
            is_idle = self._now() > self._crowded_at + self._calm_seconds
            if is_idle and self._release is release:
                self._release, self._relaxed_at = None, self._now()
            return is_idle


def involuntary_switches() -> int:
    """The times that the kernel took a core from a thread of this process that still had work."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw

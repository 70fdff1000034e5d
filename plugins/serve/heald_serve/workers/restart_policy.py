"""When a dead worker starts again: at once, then after longer and longer waits, and in the end no more.

    a life of LONG_LIFE_SECONDS or more    the count of deaths begins anew
    a shorter one                          the wait doubles; MOST_SHORT_LIVES in a row are the end of the server
"""

from __future__ import annotations

LONG_LIFE_SECONDS = 10.0
MOST_SHORT_LIVES = 6
FIRST_WAIT_SECONDS = 0.25


class RestartPolicy:
    """Of one worker."""

    def __init__(self, first_wait: float = FIRST_WAIT_SECONDS) -> None:
        self._first_wait = first_wait
        self.short_lives = 0

    def wait_after(self, life_seconds: float) -> float | None:
        """The seconds until the next start after a life of so many; None for no further start."""
        if life_seconds >= LONG_LIFE_SECONDS:
            self.short_lives = 0
            return 0.0
        self.short_lives += 1
        if self.short_lives >= MOST_SHORT_LIVES:
            return None
        return 0.0 if self.short_lives == 1 else self._first_wait * 2.0 ** (self.short_lives - 2)

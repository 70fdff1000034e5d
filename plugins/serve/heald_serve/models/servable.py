"""A version of a model: its state, its signatures, and the leases of running requests.

    START -> LOADING -> AVAILABLE -> UNLOADING -> END
                 \\-> START (a further attempt) or END (with the error)

A lease keeps an AVAILABLE version's signatures. An UNLOADING version gives no lease, and ends with its last one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from heald.errors import HealdError, NotFound

from .served_model import DEFAULT_SIGNATURE, ServedSignature

START, LOADING, AVAILABLE, UNLOADING, END = "START", "LOADING", "AVAILABLE", "UNLOADING", "END"


class Servable:
    """One version. Any thread may call."""

    def __init__(self, name: str, version: int, path: Path) -> None:
        self.name, self.version, self.path = name, version, path
        self.state = START
        self.error: HealdError | None = None  # of the last load that failed
        self.attempts = 0
        self.next_attempt = 0.0  # on the manager's clock
        self._signatures: Mapping[str, ServedSignature] | None = None
        self._leases = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{{name: {self.name} version: {self.version}}}"

    def load(self, loader: Callable[[Path], Mapping[str, ServedSignature]]) -> None:
        """Load the version. Raises the error of a load that failed; the state stays LOADING."""
        self.state = LOADING
        self.attempts += 1
        self._signatures = loader(self.path)
        self.error = None
        self.state = AVAILABLE

    def begin_unload(self) -> None:
        with self._lock:
            self.state = UNLOADING
            self._end_without_leases()

    def lease(self) -> Lease | None:
        """A lease of an available version, or None."""
        with self._lock:
            if self.state != AVAILABLE or self._signatures is None:
                return None
            self._leases += 1
            return Lease(self, self._signatures)

    def give_back(self) -> None:
        with self._lock:
            self._leases -= 1
            self._end_without_leases()

    def _end_without_leases(self) -> None:
        if self.state == UNLOADING and not self._leases:
            self._signatures = None
            self.state = END


class Lease:
    """The use of a version by one request, a context manager. `close` may be called again."""

    def __init__(self, servable: Servable, signatures: Mapping[str, ServedSignature]) -> None:
        self.name, self.version, self.path = servable.name, servable.version, servable.path
        self.signatures = signatures
        self._servable: Servable | None = servable

    def signature(self, name: str) -> ServedSignature:
        """The signature of this name; "" is the default. Raises NotFound."""
        signature = self.signatures.get(name or DEFAULT_SIGNATURE)
        if signature is None:
            raise NotFound(f'Serving signature name: "{name or DEFAULT_SIGNATURE}" not found in signature def')
        return signature

    def close(self) -> None:
        servable, self._servable = self._servable, None
        if servable is not None:
            servable.give_back()

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""A call, and the contract of protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Arrays = dict[str, Any]


class PredictCall(NamedTuple):
    """`version`: None for the highest. `signature`: "" for the default. `outputs`: none for all.

    `timeout`: the seconds until the answer, None for no limit.
    """

    model: str
    inputs: Mapping[str, Any]
    version: int | None = None
    signature: str = ""
    outputs: Sequence[str] = ()
    timeout: float | None = None


class TensorSpec(NamedTuple):
    """`dtype`: of NumPy; object for strings. `shape`: None for an unknown rank; None in it for an unknown size."""

    dtype: Any
    shape: tuple[int | None, ...] | None


class SignatureSpec(NamedTuple):
    """The tensors of a signature by name, in the server's order."""

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


class DescribeCall(NamedTuple):
    """The fields are those of a PredictCall."""

    model: str
    version: int | None = None
    signature: str = ""
    timeout: float | None = None


class ServerProtocol(Protocol):
    """Each method raises ClientError."""

    def predict(self, call: PredictCall) -> Arrays:
        """The outputs by name."""

    def describe(self, call: DescribeCall) -> SignatureSpec:
        """The inputs and outputs of a signature."""

    def is_ready(self, model: str, timeout: float | None) -> bool:
        """True for a model with a version that serves."""

    def close(self) -> None:
        """End the connections."""

"""The section [limits]: bounds of the resources that programs take from the process."""

from __future__ import annotations

from ...errors import InvalidArgument
from ..support.records import dataclass

DEFAULT_NESTED_CALLS = 1_000  # by default; a level of recursion takes 3 to 60 kB


@dataclass(frozen=True)
class LimitsConfig:
    """The section [limits].

    `memory`: The most host memory that programs may have in use at a time: bytes, "2GiB", or a share of the memory that
        is available when the runtime is made.
    `nested_calls`: The most levels of function calls within function calls. It ends recursion without end.
    """

    memory: int | str = "80%"
    nested_calls: int = DEFAULT_NESTED_CALLS

    def __post_init__(self) -> None:
        if self.nested_calls < 1:
            raise InvalidArgument(f"nested_calls is {self.nested_calls}, not 1 or more")

"""NamedFeeds: the inputs of a caller, by the caller's names, for the tensors that a step is fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InvalidArgument
from ..host.host_memory import HostMemory
from ..values.tensor import TensorMetadata
from .feeds import convert_feed, convert_or_wrap


class NamedFeeds:
    """`names` of inputs, and the distinct `tensors` that they stand for, both in the order of calls.

    Signatures may give one tensor several names. Such inputs need equal values.
    """

    def __init__(self, tensor_of_input: Mapping[str, str]) -> None:
        """`given` has the graph's names of tensors by the names of inputs."""
        self.names = tuple(tensor_of_input)
        keys = [tensor.removesuffix(":0") for tensor in tensor_of_input.values()]
        self.firsts = tuple(dict.fromkeys(keys.index(key) for key in keys))
        self._first_of = [keys.index(key) for key in keys]
        self.tensors = tuple([*tensor_of_input.values()][i] for i in self.firsts)

    @property
    def are_distinct(self) -> bool:
        return len(self.firsts) == len(self.names)

    def distinct(self, arrays: Sequence[Any], metas: Sequence[TensorMetadata]) -> list[Any]:
        """Return the value of each tensor, whose metadata is given. Raises InvalidArgument for two values of one."""
        meta_of = dict(zip(self.firsts, metas, strict=True))
        for i, first in enumerate(self._first_of):
            if i != first and arrays[i] is not arrays[first]:
                one, other = (convert_feed(arrays[n], meta_of[first], self.names[n]) for n in (first, i))
                if one.shape != other.shape or not ((one == other) | (one != one)).all():
                    raise InvalidArgument(f"inputs '{self.names[first]}' and '{self.names[i]}' are one tensor, "
                                          f"'{self.tensors[self.firsts.index(first)]}', and have different values",
                                          hint="give both the same value")
        return [arrays[i] for i in self.firsts]

    def check(self, arrays: Sequence[Any], metas: Sequence[TensorMetadata], memory: HostMemory) -> None:
        """Raises the error of a distinct value that does not fit its tensor, with the caller's name of it."""
        for first, array, meta in zip(self.firsts, arrays, metas, strict=True):
            convert_or_wrap(array, meta, self.names[first], memory)

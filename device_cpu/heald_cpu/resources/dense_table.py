"""DenseTable: a mutable table with TensorFlow's buckets, which its exports and checkpoints show.

Lookups use the dict of every table. The buckets are kept beside it: each has a key, was erased, or is empty.
"""

# A new key goes to the first bucket without a key that its probes meet: the bucket of its hash, then 1, 3, 6, ... after
# it. An erased bucket keeps its value. A table with too many keys gets twice the buckets, and its keys in their order.
#
# An import takes the buckets as they are, as TensorFlow does: it is a checkpoint of another table.

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from heald.api import DType, errors

from ..element_types import Array
from .table import MutableTable

LARGEST_BUCKET_COUNT = 1 << 28


class DenseTable(MutableTable):
    """Two keys have a meaning of their own: `reserved`, the key of empty buckets and the one of erased buckets."""

    reserved: tuple[Any, ...] | None = None  # known once the table's node has run

    def __init__(self, name: str, key: DType, value: DType, value_dims: tuple[int, ...] = ()) -> None:
        super().__init__(name, key, value, value_dims)
        self._bucket_count = 0
        self._largest_load = 1.0
        self._hash_strings: Callable[[Array], Array] | None = None
        self._key_in: dict[int, Any] = {}  # bucket -> its key
        self._bucket_of: dict[Any, int] = {}
        self._erased: dict[int, Any] = {}  # bucket -> the value of the key that was erased

    def reserve(
        self, empty: Any, deleted: Any, bucket_count: int, largest_load: float, hash_strings: Callable[[Array], Array]
    ) -> None:
        """Set the reserved keys and the buckets, at first use. The hash of an integer is the integer.

        Raises InvalidArgument for equal keys, for other keys than before, and for buckets that no table can have.
        """
        if empty == deleted:
            raise errors.InvalidArgument("Empty and deleted keys cannot be equal")
        if self.reserved not in (None, (empty, deleted)):
            raise errors.InvalidArgument(f"table '{self.name}' has the empty and deleted keys {list(self.reserved)}, "
                                         f"not {[empty, deleted]}")
        if not 0 < largest_load < 1:
            raise errors.InvalidArgument(f"max_load_factor must be between 0 and 1, got: {largest_load}")
        if bucket_count < 4 or bucket_count & (bucket_count - 1) or bucket_count > LARGEST_BUCKET_COUNT:
            raise errors.InvalidArgument(f"Number of buckets must be at least 4 and a power of 2, got: {bucket_count}")
        if self.reserved is None:
            self._bucket_count, self._largest_load = bucket_count, largest_load
            self._hash_strings = hash_strings
        self.reserved = empty, deleted

    def find(self, keys: Array, default: Array) -> Array:
        self._refuse_reserved(keys)
        return super().find(keys, default)

    def insert(self, keys: Array, values: Array) -> None:
        self._refuse_reserved(keys)
        pairs = dict(self._pairs(keys, values))
        with self._lock:
            self._arrays = None
            self._grow(len(self._found) + keys.size)
            self._place(key for key in pairs if key not in self._bucket_of)
            self._found.update(pairs)

    def remove(self, keys: Array) -> None:
        self._refuse_reserved(keys)
        with self._lock:
            self._arrays = None
            for key in keys.reshape(-1).tolist():
                if key in self._found:
                    bucket = self._bucket_of.pop(key)
                    del self._key_in[bucket]
                    self._erased[bucket] = self._found.pop(key)

    def replace(self, keys: Array, values: Array) -> None:
        """Take the buckets of an export. Raises InvalidArgument for other shapes than its."""
        dims = self.value_dims or (1,)
        if keys.ndim != 2 or keys.shape[1] != 1 or values.shape != (len(keys), *dims):
            raise errors.InvalidArgument(f"an import of table '{self.name}' has keys of shape [n, 1] and values of "
                                         f"shape [n, {', '.join(map(str, dims))}], got {list(keys.shape)} and "
                                         f"{list(values.shape)}")
        if not len(keys):
            raise errors.InvalidArgument("a dense table needs buckets, and this import has none")
        empty, deleted = self.reserved or (None, None)
        buckets = list(enumerate(zip(keys[:, 0].tolist(), self._values(values, len(keys)), strict=True)))
        with self._lock:
            self._arrays, self._bucket_count = None, len(keys)
            self._erased = {bucket: value for bucket, (key, value) in buckets if key == deleted}
            self._key_in = {bucket: key for bucket, (key, _) in buckets if key not in (empty, deleted)}
            self._bucket_of = {key: bucket for bucket, key in self._key_in.items()}
            self._found = {key: value for _, (key, value) in buckets if key not in (empty, deleted)}

    def export(self) -> tuple[Array, Array]:
        """The keys of all buckets, [buckets, 1], and their values, [buckets, *value_dims] or [buckets, 1]."""
        empty, deleted = self.reserved or (0, 0)
        with self._lock:
            keys = np.full((self._bucket_count, 1), empty, self.key.numpy)
            values = np.zeros((self._bucket_count, *(self.value_dims or (1,))), self.value.numpy)
            for bucket, key in self._key_in.items():
                keys[bucket], values[bucket] = key, self._found[key]
            for bucket, value in self._erased.items():
                keys[bucket], values[bucket] = deleted, value
        return keys, values

    def _grow(self, key_count: int) -> None:
        """Double the buckets until the load is small enough. Raises ResourceExhausted for too many."""
        count = self._bucket_count
        while key_count > count * self._largest_load:
            count *= 2
        if count > LARGEST_BUCKET_COUNT:
            raise errors.ResourceExhausted(f"table '{self.name}' would have {count:,} buckets")
        if count > self._bucket_count:
            keys = [self._key_in[bucket] for bucket in sorted(self._key_in)]
            self._bucket_count, self._key_in, self._bucket_of, self._erased = count, {}, {}, {}
            self._place(keys)

    def _place(self, keys: Iterable[Any]) -> None:
        keys = list(keys)
        mask = self._bucket_count - 1
        for key, first in zip(keys, self._hashes(keys), strict=True):
            bucket, probes = first & mask, 0
            while bucket in self._key_in and probes < self._bucket_count:
                probes += 1
                bucket = (bucket + probes) & mask
            if bucket in self._key_in:  # an imported table may have no free bucket, or a number of them without probes
                raise errors.FailedPrecondition(f"table '{self.name}' has no free bucket for {key!r}")
            self._erased.pop(bucket, None)
            self._key_in[bucket], self._bucket_of[key] = key, bucket

    def _hashes(self, keys: list[Any]) -> list[int]:
        if self.key.itemsize:
            return keys
        array = np.empty(len(keys), object)
        array[:] = keys
        assert self._hash_strings is not None  # the node has run: it gave the handle
        return self._hash_strings(array).tolist()  # type: ignore[no-any-return]

    def _refuse_reserved(self, keys: Array) -> None:
        for name, key in zip(("empty_key", "deleted_key"), self.reserved or (), strict=False):
            if (keys == key).any():
                raise errors.InvalidArgument(f"Using the {name} as a table key is not allowed, given {key!r}")

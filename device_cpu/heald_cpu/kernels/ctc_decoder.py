"""Decoders of connectionist temporal classification: the best class at each time, and beam search.

Beam search follows A. Graves, Sequence Transduction with Recurrent Neural Networks (2012): a beam is a sequence of
labels with two log probabilities, of all paths to it that end in a blank, and of all that end in its last label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappush, heapreplace
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

Run = Callable[..., tuple[Any, ...]]
ROOT_NODE = 0


def ctc_greedy_decoder(b: Bind) -> Run:
    time, _, classes = b.inputs[0].meta.dims
    blank, merge = b.attrs["blank_index"] % classes, b.attrs["merge_repeated"]

    def run(logits: Any, lengths: Any) -> tuple[Any, ...]:
        _check_lengths(lengths, time)
        best, largest = _best(logits)
        within = np.arange(time)[:, None] < lengths
        emits = within & (best != blank)
        if merge:
            emits[1:] &= best[1:] != best[:-1]
        paths = [best[emits[:, i], i] for i in range(len(lengths))]
        return *_sparse(paths), -np.where(within, largest, 0).sum(0, dtype=logits.dtype)[:, None]

    return run


def _best(logits: Any) -> tuple[Any, Any]:
    """The first of the largest classes, and its logit. NaN wins as the first class, and loses as any other."""
    numbers = np.where(np.isnan(logits), -np.inf, logits)
    best = np.where(np.isnan(logits[..., 0]), 0, numbers.argmax(2))
    return best, np.take_along_axis(logits, best[..., None], 2)[..., 0]


def _check_lengths(lengths: Any, time: int) -> None:
    if (lengths > time).any():
        raise errors.FailedPrecondition(f"sequence_length {lengths.max()} exceeds the time of the inputs, {time}")


def _sparse(paths: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Indices, values and shape of the sparse matrix with these rows."""
    counts = np.array([len(path) for path in paths], np.int64)
    rows = np.repeat(np.arange(len(paths)), counts)
    columns = np.arange(len(rows)) - np.repeat(counts.cumsum() - counts, counts)
    values = np.concatenate([np.asarray(path, np.int64) for path in paths])
    return np.stack([rows, columns], 1).astype(np.int64), values, np.array([len(paths), counts.max()], np.int64)


def ctc_beam_search_decoder(b: Bind) -> Run:
    time, batch, _ = b.inputs[0].meta.dims
    width, count, merge = b.attrs["beam_width"], b.attrs["top_paths"], b.attrs["merge_repeated"]

    def run(logits: Any, lengths: Any) -> tuple[Any, ...]:
        _check_lengths(lengths, time)
        shifted = logits - logits.max(2, keepdims=True)
        log_y = shifted - np.log(np.exp(shifted).sum(2, keepdims=True))
        paths_of_images = [_search(log_y[: max(0, lengths[i]), i], width, count, merge) for i in range(batch)]
        decoded = [_sparse([paths[rank] for paths, _ in paths_of_images]) for rank in range(count)]
        indices, values, shapes = zip(*decoded, strict=True)
        return *indices, *values, *shapes, np.stack([totals for _, totals in paths_of_images]).astype(logits.dtype)

    return run


def _search(log_y: Any, width: int, count: int, merge: bool) -> tuple[list[list[int]], Any]:
    """The `count` most likely sequences of labels, and their log probabilities. Raises InvalidArgument."""
    beams = _Beams(width)
    for now in log_y:
        beams.step(now)
    if len(beams.nodes) < count:
        raise errors.InvalidArgument("Less leaves in the beam search than requested.")
    paths = [beams.path(node) for node in beams.nodes[:count]]
    if merge:
        paths = [[label for i, label in enumerate(path) if i == 0 or label != path[i - 1]] for path in paths]
    return paths, beams.total[:count]


class _Beams:
    """The beams at one time, the most likely first. A node of the tree of sequences is a number; -1 is no label."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.nodes = np.array([ROOT_NODE])
        self.blank = self.total = np.zeros(1)
        self.label = np.full(1, -np.inf)
        self._parents, self._labels = [-1], [-1]
        self._children: dict[tuple[int, int], int] = {}

    def path(self, node: int) -> list[int]:
        labels = []
        while node != ROOT_NODE:
            labels.append(self._labels[node])
            node = self._parents[node]
        return labels[::-1]

    def step(self, log_y: Any) -> None:
        """Continue each beam, and extend it by each label. The most likely results are the next beams."""
        labels, log_blank = np.arange(len(log_y) - 1), log_y[-1]
        last = np.array([self._labels[node] for node in self.nodes])
        extended = np.where(labels == last[:, None], self.blank[:, None], self.total[:, None]) + log_y[:-1]
        blank, label = self.total + log_blank, np.where(last < 0, -np.inf, self.label + log_y[last])
        same: dict[tuple[int, int], int] = {}  # from an extension to the beam with the same sequence
        beam_of_node = {node: i for i, node in enumerate(self.nodes.tolist())}
        for i, node in enumerate(self.nodes.tolist()):
            parent = beam_of_node.get(self._parents[node])
            if parent is not None:
                label[i] = np.logaddexp(label[i], extended[parent, last[i]])
                same[parent, int(last[i])] = i
        self._keep(blank, label, self._best(np.logaddexp(blank, label), extended, same), extended)

    def _best(self, total: Any, extended: Any, same: dict[tuple[int, int], int]) -> Any:
        """The numbers of the next beams, the most likely first: old beams have the lowest numbers, extensions follow.

        Extensions compete in the order of their beams. A beam that lost its place before its turn as an extension is
        not extended itself.
        """
        count, width, label_count = len(total), self.width, extended.shape[1]
        heap = [(t, -i) for i, t in enumerate(total.tolist())]
        heapify(heap)
        lost: set[int] = set()
        fruitless: set[int] = set()
        competes = extended > (heap[0][0] if count == width else -np.inf)
        for extension in same:
            competes[extension] = True
        beams, labels = competes.nonzero()
        last_beam, is_skipped, totals = -1, False, self.total.tolist()
        for i, j, value in zip(beams.tolist(), labels.tolist(), extended[beams, labels].tolist(), strict=True):
            if i != last_beam:
                last_beam = i
                is_skipped = i in fruitless or (len(heap) == width and totals[i] <= heap[0][0])
            if is_skipped:
                continue
            number = -count - i * label_count - j
            if (i, j) in same:
                fruitless |= {same[i, j]} & lost
            elif len(heap) < width:
                heappush(heap, (value, number))
            elif value > heap[0][0]:
                lost.add(-heapreplace(heap, (value, number))[1])
        return np.array([-number for _, number in sorted(heap, reverse=True)])

    def _keep(self, blank: Any, label: Any, best: Any, extended: Any) -> None:
        count = len(blank)
        parents, labels = np.divmod(np.maximum(best - count, 0), max(1, extended.shape[1]))
        is_old, old = best < count, np.minimum(best, count - 1)
        self.nodes = np.array([
            node if stays else self._child(parent, new) for stays, node, parent, new in
            zip(is_old, self.nodes[old].tolist(), self.nodes[parents].tolist(), labels.tolist(), strict=True)])
        self.blank = np.where(is_old, blank[old], -np.inf)
        self.label = np.where(is_old, label[old], extended[parents, labels] if extended.size else -np.inf)
        self.total = np.logaddexp(self.blank, self.label)

    def _child(self, node: int, label: int) -> int:
        child = self._children.setdefault((node, label), len(self._labels))
        if child == len(self._labels):
            self._labels.append(label)
            self._parents.append(node)
        return child


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("CTCGreedyDecoder", dtypes={"T": ("float32", "float64")}, allocates=True)(ctc_greedy_decoder)
    kernels.kernel("CTCBeamSearchDecoder", dtypes={"T": ("float32", "float64")}, allocates=True)(
        ctc_beam_search_decoder)

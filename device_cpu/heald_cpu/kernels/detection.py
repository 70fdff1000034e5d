"""Kernels on bounding boxes in images: non-maximum suppression and drawing."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from .extremes import larger, lesser

Run = Callable[..., Any]
Similarity = Callable[[Array, Array], Array]  # of candidates and selected boxes, by index
LEAST_BLOCK, LARGEST_BLOCK = 16, 128  # candidates that are compared with each other at once
EMPTY = np.zeros(0, np.int64)


# Which boxes


def overlap(boxes: Array) -> Similarity:
    """Intersection over union of boxes, each given by two opposite corners; 0 for a box without area."""
    dtype, zero = boxes.dtype, np.float32(0)
    finite = np.isfinite(boxes).all()
    least, greatest = (np.minimum, np.maximum) if finite else (lesser, larger)
    y, x, other_y, other_x = boxes.T.astype(np.float32)
    top, bottom, left, right = least(y, other_y), greatest(y, other_y), least(x, other_x), greatest(x, other_x)
    area = (bottom - top) * (right - left)

    flat = area <= 0
    has_flat = bool(flat.any())

    def similarity(i: Array, j: Array) -> Array:
        height = least(bottom[i], bottom[j])
        height -= greatest(top[i], top[j])
        common = least(right[i], right[j])
        common -= greatest(left[i], left[j])
        common = greatest(common, zero)
        common *= greatest(height, zero)
        union = np.add(area[i], area[j], out=height)
        union -= common
        if not has_flat:
            ratio: Array = np.divide(common, union, out=common)
        else:
            ratio = np.where(flat[i] | flat[j], zero, common / union)
        return ratio.astype(dtype, copy=False)

    return similarity


def candidates(scores: Array, threshold: Any) -> Array:
    """Indices of the boxes with scores above the threshold, best first; equal scores keep their order."""
    above = np.flatnonzero(scores > threshold)
    return above[np.argsort(-scores[above], kind="stable")]


def select(order: Array, largest_count: int, similarity: Similarity, threshold: Any) -> Array:
    """Greedy selection: the best candidates, none more similar to a better one than the threshold."""
    selected, first = EMPTY, 0
    block = min(max(2 * largest_count, LEAST_BLOCK), LARGEST_BLOCK)
    while first < len(order) and len(selected) < largest_count:
        candidates = order[first : first + block]
        first, block = first + block, min(2 * block, LARGEST_BLOCK)
        if len(selected):
            candidates = candidates[~(similarity(candidates[:, None], selected[None]) > threshold).any(1)]
        over = similarity(candidates[None], candidates[:, None]) > threshold
        chosen = candidates[_compatible(over, largest_count - len(selected))]
        selected = np.append(selected, chosen) if len(selected) else chosen
    return selected


def _compatible(over: Array, largest_count: int) -> list[int]:
    """Greedy choice of candidates, by index. `over[i, j]`: candidate i, if accepted, suppresses candidate j. A set of
    candidates is a number with a bit for each, as Python joins such sets faster than NumPy joins short rows."""
    packed = np.packbits(over, axis=1, bitorder="little")
    row_bytes, content = packed.shape[1], packed.tobytes()
    accepted: list[int] = []
    suppressed = 0
    for i in range(len(over)):
        if not suppressed >> i & 1:
            accepted.append(i)
            if len(accepted) == largest_count:
                break
            suppressed |= int.from_bytes(content[i * row_bytes : (i + 1) * row_bytes], "little")
    return accepted


def select_softly(
    scores: Array, least: Any, largest_count: int, similarity: Similarity, threshold: Any, sigma: Any
) -> tuple[Array, Array]:
    """TensorFlow's algorithm as it stands, after Bodla et al., Soft-NMS (2017). Similarity to selected boxes lowers a
    candidate's score. The candidate with the best score is selected once it was compared with all selected boxes.
    Sigma 0 selects greedily, for NaN or infinity among similarities and threshold, which `select` does not handle."""
    dtype = scores.dtype.type
    soft = sigma > 0
    scale = dtype(-0.5) / sigma if soft else dtype(0)
    heap = [(-scores[i], int(i), 0) for i in np.flatnonzero(scores > least)]
    heapify(heap)
    selected: list[int] = []
    selected_scores = []
    while heap and len(selected) < largest_count:
        negative, i, compared = heappop(heap)
        score, suppressed = -negative, False
        if compared < len(selected):
            alike = similarity(np.array(i), np.array(selected[compared:][::-1])).astype(dtype, copy=False)
            weights = np.where(soft | (alike <= threshold), np.exp(scale * alike * alike), dtype(0))
            scored = np.multiply.accumulate(np.append(score, weights))[1:]
            over = (alike > threshold) & (not soft)
            ends = np.flatnonzero(over | (scored <= least))
            last = ends[0] if ends.size else -1
            score, suppressed = scored[last], bool(over[last])
        if suppressed:
            continue
        if score == -negative:
            selected.append(i)
            selected_scores.append(score)
        elif score > least:
            heappush(heap, (-score, i, len(selected)))
    return np.array(selected, np.int64), np.array(selected_scores, scores.dtype)


def _check_threshold(threshold: Any) -> None:
    if not 0 <= threshold <= 1:
        raise errors.InvalidArgument(f"iou_threshold must be in [0, 1], given {threshold}")


def _largest_count(b: Bind) -> int:
    value = b.inputs[2].value
    assert value is not None
    return int(value.reshape(()))


def _pad_with_zeros(selected: Array, length: int) -> Array:
    out = np.zeros(length, selected.dtype)
    out[: len(selected)] = selected
    return out


def non_max_suppression(b: Bind) -> Run:
    """All versions of NonMaxSuppression. A threshold that an op lacks gets a value without effect."""
    largest_count, iou = _largest_count(b), b.attrs.get("iou_threshold")
    pad, outputs = b.attrs.get("pad_to_max_output_size", False), len(b.outputs)

    def run(boxes: Array, scores: Array, _most: Array, *thresholds: Array) -> Any:
        dtype = scores.dtype.type
        settings = [dtype(t) for t in thresholds] if iou is None else [dtype(iou)]
        threshold, least, sigma = (*settings, *(np.finfo(dtype).min, dtype(0))[len(settings) - 1 :])
        _check_threshold(threshold)
        if not sigma >= 0:
            raise errors.InvalidArgument(f"soft_nms_sigma must be non-negative, given {sigma}")
        selected, selected_scores = _select_boxes(boxes, scores, largest_count, threshold, least, sigma)
        count = np.array(len(selected), np.int32)
        if pad:
            selected = _pad_with_zeros(selected, largest_count)
            selected_scores = _pad_with_zeros(selected_scores, largest_count)
        indices = selected.astype(np.int32)
        return {1: indices, 2: (indices, count), 3: (indices, selected_scores, count)}[outputs]

    return run


def _select_boxes(
    boxes: Array, scores: Array, largest_count: int, threshold: Any, least: Any, sigma: Any
) -> tuple[Array, Array]:
    similarity = overlap(boxes)
    if sigma > 0 or not np.isfinite(boxes).all():
        return select_softly(scores, least, largest_count, similarity, threshold, sigma)
    selected = select(candidates(scores, least), largest_count, similarity, threshold)
    return selected, scores[selected]


def non_max_suppression_with_overlaps(b: Bind) -> Run:
    largest_count = _largest_count(b)

    def run(overlaps: Array, scores: Array, _most: Array, threshold: Array, least: Array) -> Array:
        def similarity(i: Array, j: Array) -> Array:
            return overlaps[i, j]

        if np.isfinite(overlaps).all() and not np.isnan(threshold):
            selected = select(candidates(scores, least), largest_count, similarity, threshold)
        else:
            selected, _ = select_softly(scores, least[()], largest_count, similarity, threshold, np.float32(0))
        return selected.astype(np.int32)

    return run


def combined_non_max_suppression(b: Bind) -> Run:
    largest_class_count = _largest_count(b)
    clip = b.attrs["clip_boxes"]

    def run(boxes: Array, scores: Array, _each: Array, _total: Array, threshold: Array, least: Array,
            *outs: Array) -> None:
        _check_threshold(threshold)
        all_found, all_scored, all_classes, counts = outs
        for out in outs:
            out.fill(0)
        for image in range(len(boxes)):
            box_indices, of_class = _by_class(boxes[image], scores[image], largest_class_count, threshold, least)
            values = scores[image][box_indices, of_class]
            best = np.argsort(-values, kind="stable")[: all_scored.shape[1]]
            box_indices, of_class, n = box_indices[best], of_class[best], len(best)
            corners = boxes[image][box_indices, of_class if boxes.shape[2] > 1 else of_class * 0]
            all_found[image, :n] = np.clip(corners, 0, 1) if clip else corners
            all_scored[image, :n], all_classes[image, :n], counts[image] = values[best], of_class, n

    return run


def _by_class(boxes: Array, scores: Array, largest_count: int, threshold: Any, least: Any) -> tuple[Array, Array]:
    """The boxes that each class keeps, and their classes."""
    shared = overlap(boxes[:, 0]) if boxes.shape[1] == 1 else None
    selections = []
    for c, of_class in enumerate(np.ascontiguousarray(scores.T)):
        similarity = shared if shared is not None else overlap(boxes[:, c])
        selections.append(select(candidates(of_class, least), largest_count, similarity, threshold))
    counts = [len(k) for k in selections]
    return np.concatenate([EMPTY, *selections]), np.repeat(np.arange(len(selections)), counts)


# Drawing

PALETTE = np.array(  # yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia
    [(1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1), (0.5, 0.5, 0, 1), (0.5, 0, 0, 1),
     (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1)], np.float32)


def draw_bounding_boxes(b: Bind) -> Run:
    """DrawBoundingBoxes. Boxes take the colors in turn. Without given colors, boxes in gray images are white."""
    _, height, width, depth = b.inputs[0].meta.dims
    white = np.ones((1, 4), np.float32)
    default = white if depth == 1 else PALETTE
    last = np.array([height - 1, width - 1, height - 1, width - 1], np.float32)

    def run(images: Array, boxes: Array, *colors_and_out: Array) -> None:
        *colors, out = colors_and_out
        palette = colors[0] if colors and colors[0].size else default
        np.copyto(out, images)
        for image, corners in zip(out, (boxes * last).astype(np.int64), strict=True):
            for n, corner in enumerate(corners.tolist()):
                _outline(image, corner, palette[n % len(palette), :depth])

    return run


def _outline(image: Array, corners: tuple[int, int, int, int], color: Array) -> None:
    """Draw the sides that lie in the image."""
    top, left, bottom, right = corners
    height, width = image.shape[:2]
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
    for row in (top, bottom):
        if 0 <= row < height:
            image[row, columns] = color
    for column in (left, right):
        if 0 <= column < width:
            image[rows, column] = color


def register_kernels(kernels: Kernels) -> None:
    for version in ("", "V2", "V3", "V4", "V5"):
        kernels.kernel(f"NonMaxSuppression{version}", allocates=True)(non_max_suppression)
    kernels.kernel("NonMaxSuppressionWithOverlaps", allocates=True)(non_max_suppression_with_overlaps)
    kernels.kernel("CombinedNonMaxSuppression")(combined_non_max_suppression)
    for op in ("DrawBoundingBoxes", "DrawBoundingBoxesV2"):
        kernels.kernel(op, inplace={0: 0})(draw_bounding_boxes)

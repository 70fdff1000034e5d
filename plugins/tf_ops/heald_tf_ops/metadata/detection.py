"""Metadata of ops on bounding boxes in images: non-maximum suppression and drawing."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import amount, ranked, same_dim


@rule(
    "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
    values=("max_output_size",),
)
def non_max_suppression(
    attrs: Attrs, boxes: ValueInfo, scores: ValueInfo, most: ValueInfo, *thresholds: ValueInfo
) -> tuple[ValueInfo, ...]:
    """Return indices of boxes; V4 appends the number of valid indices, V5 inserts scores before the number."""
    count, columns = ranked(boxes, 2, "boxes")
    same_dim(columns, 4, "the columns of boxes and 4")
    same_dim(count, ranked(scores, 1, "scores")[0], "the rows of boxes and the elements of scores")
    for x, name in zip(thresholds, ("iou_threshold", "score_threshold", "soft_nms_sigma"), strict=False):
        ranked(x, 0, name)
    length = amount(most, "max_output_size")
    selected = info(dtypes.int32, (length if attrs.get("pad_to_max_output_size") else None,))
    if "pad_to_max_output_size" not in attrs:
        return (selected,)
    selected_scores = (info(scores.dtype, selected.shape),) if len(thresholds) == 3 else ()
    return (selected, *selected_scores, info(dtypes.int32, ()))


@rule("NonMaxSuppressionWithOverlaps", values=("max_output_size",))
def non_max_suppression_with_overlaps(
    _: Attrs, overlaps: ValueInfo, scores: ValueInfo, most: ValueInfo, *thresholds: ValueInfo
) -> ValueInfo:
    rows, columns = ranked(overlaps, 2, "overlaps")
    count = same_dim(rows, columns, "the sides of overlaps, which is square,")
    same_dim(count, ranked(scores, 1, "scores")[0], "the rows of overlaps and the elements of scores")
    amount(most, "max_output_size")
    for x, name in zip(thresholds, ("overlap_threshold", "score_threshold"), strict=True):
        ranked(x, 0, name)
    return info(dtypes.int32, (None,))


@rule("CombinedNonMaxSuppression", values=("max_output_size_per_class", "max_total_size"))
def combined_non_max_suppression(
    attrs: Attrs, boxes: ValueInfo, scores: ValueInfo, per_class: ValueInfo, total: ValueInfo, *thresholds: ValueInfo
) -> tuple[ValueInfo, ...]:
    """Return boxes, scores, classes, and the number of valid boxes in each image."""
    batch, count, sets, columns = ranked(boxes, 4, "boxes")
    scored, scores_count, classes = ranked(scores, 3, "scores")
    batch = same_dim(batch, scored, "the batches of boxes and scores")
    same_dim(count, scores_count, "the numbers of boxes and scores")
    same_dim(columns, 4, "the columns of boxes and 4")
    if sets != 1:
        same_dim(sets, classes, "the third dimension of boxes, unless it is 1, and the number of classes")
    for x, name in zip(thresholds, ("iou_threshold", "score_threshold"), strict=True):
        ranked(x, 0, name)
    most = amount(total, "max_total_size", least=1)
    each = amount(per_class, "max_output_size_per_class", least=1)
    if attrs["pad_per_class"]:
        most = None if most is None or each is None or classes is None else min(most, each * classes)
    floats = (info(dtypes.float32, (batch, most, *last)) for last in ((4,), (), ()))
    return (*floats, info(dtypes.int32, (batch,)))


@rule("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def draw_bounding_boxes(_attrs: Attrs, images: ValueInfo, boxes: ValueInfo, *colors: ValueInfo) -> ValueInfo:
    batch, _height, _width, depth = ranked(images, 4, "images")
    boxes_batch, _count, columns = ranked(boxes, 3, "boxes")
    same_dim(batch, boxes_batch, "the numbers of images and of rows of boxes")
    same_dim(columns, 4, "the third dimension of boxes and 4")
    if depth not in (None, 1, 3, 4):
        raise InvalidArgument(f"images must have a depth of 1 (gray), 3 (RGB) or 4 (RGBA), given {depth}")
    for x in colors:
        _, channels = ranked(x, 2, "colors")
        if channels is not None and depth is not None and channels < depth:
            raise InvalidArgument(f"colors must have the {depth} channels of the images, given {shape_text(x.shape)}")
    return ValueInfo(images.meta)

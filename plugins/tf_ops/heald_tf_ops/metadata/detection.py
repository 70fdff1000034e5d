"""Metadata of ops on bounding boxes in images: non-maximum suppression and drawing."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import count_in, dims_of_rank, same_dim


@rule(
    "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
    values=("max_output_size",),
)
def non_max_suppression(
    attrs: Attrs, boxes: ValueInfo, scores: ValueInfo, max_output_size: ValueInfo, *thresholds: ValueInfo
) -> tuple[ValueInfo, ...]:
    """Return indices of boxes; V4 appends the number of valid indices, V5 inserts scores before the number."""
    count, columns = dims_of_rank(boxes, 2, "boxes")
    same_dim(columns, 4, "the columns of boxes and 4")
    same_dim(count, dims_of_rank(scores, 1, "scores")[0], "the rows of boxes and the elements of scores")
    for x, name in zip(thresholds, ("iou_threshold", "score_threshold", "soft_nms_sigma"), strict=False):
        dims_of_rank(x, 0, name)
    length = count_in(max_output_size, "max_output_size")
    selected = info(dtypes.int32, (length if attrs.get("pad_to_max_output_size") else None,))
    if "pad_to_max_output_size" not in attrs:
        return (selected,)
    selected_scores = (info(scores.dtype, selected.shape),) if len(thresholds) == 3 else ()
    return (selected, *selected_scores, info(dtypes.int32, ()))


@rule("NonMaxSuppressionWithOverlaps", values=("max_output_size",))
def non_max_suppression_with_overlaps(
    _: Attrs, overlaps: ValueInfo, scores: ValueInfo, max_output_size: ValueInfo, *thresholds: ValueInfo
) -> ValueInfo:
    rows, columns = dims_of_rank(overlaps, 2, "overlaps")
    count = same_dim(rows, columns, "the sides of overlaps, which is square,")
    same_dim(count, dims_of_rank(scores, 1, "scores")[0], "the rows of overlaps and the elements of scores")
    count_in(max_output_size, "max_output_size")
    for x, name in zip(thresholds, ("overlap_threshold", "score_threshold"), strict=True):
        dims_of_rank(x, 0, name)
    return info(dtypes.int32, (None,))


@rule("CombinedNonMaxSuppression", values=("max_output_size_per_class", "max_total_size"))
def combined_non_max_suppression(
    attrs: Attrs, boxes: ValueInfo, scores: ValueInfo, per_class: ValueInfo, total: ValueInfo, *thresholds: ValueInfo
) -> tuple[ValueInfo, ...]:
    """Return boxes, scores, classes, and the number of valid boxes in each image."""
    batch, count, sets, columns = dims_of_rank(boxes, 4, "boxes")
    scored, scores_count, classes = dims_of_rank(scores, 3, "scores")
    batch = same_dim(batch, scored, "the batches of boxes and scores")
    same_dim(count, scores_count, "the numbers of boxes and scores")
    same_dim(columns, 4, "the columns of boxes and 4")
    if sets != 1:
        same_dim(sets, classes, "the third dimension of boxes, unless it is 1, and the number of classes")
    for x, name in zip(thresholds, ("iou_threshold", "score_threshold"), strict=True):
        dims_of_rank(x, 0, name)
    max_detections = count_in(total, "max_total_size", least=1)
    max_per_class = count_in(per_class, "max_output_size_per_class", least=1)
    if attrs["pad_per_class"]:
        limit = None if max_per_class is None or classes is None else max_per_class * classes
        max_detections = None if max_detections is None or limit is None else min(max_detections, limit)
    floats = (info(dtypes.float32, (batch, max_detections, *last)) for last in ((4,), (), ()))
    return (*floats, info(dtypes.int32, (batch,)))


@rule("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def draw_bounding_boxes(_attrs: Attrs, images: ValueInfo, boxes: ValueInfo, *colors: ValueInfo) -> ValueInfo:
    batch, _height, _width, depth = dims_of_rank(images, 4, "images")
    boxes_batch, _count, columns = dims_of_rank(boxes, 3, "boxes")
    same_dim(batch, boxes_batch, "the numbers of images and of rows of boxes")
    same_dim(columns, 4, "the third dimension of boxes and 4")
    if depth not in (None, 1, 3, 4):
        raise InvalidArgument(f"images must have a depth of 1 (gray), 3 (RGB) or 4 (RGBA), given {depth}")
    for x in colors:
        _, channels = dims_of_rank(x, 2, "colors")
        if channels is not None and depth is not None and channels < depth:
            raise InvalidArgument(f"colors must have the {depth} channels of the images, given {shape_text(x.shape)}")
    return ValueInfo(images.meta)

"""Heads of detectors: anchors, boxes, suppression in loops, crops, masks."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import Served
from weights import Rng, normal, variable

CLASSES, SIDE = 3, 32


def _images(rng: Rng, batch: int = 2) -> list[dict[str, np.ndarray]]:
    return [{"images": normal(rng, rows, SIDE, SIDE, 3, scale=1.0)} for rows in (batch, 1)]


def _backbone(rng: Rng) -> tf.Module:
    holder = tf.Module()
    holder.first, holder.second = variable(rng, 3, 3, 3, 8, scale=0.4), variable(rng, 3, 3, 8, 16, scale=0.2)
    holder.boxes, holder.classes = (
        variable(rng, 1, 1, 16, 8, scale=0.3),
        variable(rng, 1, 1, 16, 2 * CLASSES, scale=0.15),
    )
    return holder


def _features(holder: tf.Module, images: tf.Tensor) -> tf.Tensor:
    x = tf.nn.relu6(tf.nn.conv2d(images, holder.first, 2, "SAME"))
    return tf.nn.relu6(tf.nn.conv2d(x, holder.second, 2, "SAME"))


def _anchors() -> np.ndarray:
    """Centre y, centre x, height, width of two anchors in each of 8 x 8 cells."""
    centres = (np.arange(8) + 0.5) / 8
    rows = [(y, x, size, size) for y in centres for x in centres for size in (0.2, 0.35)]
    return np.array(rows, np.float32)


def _decode(codes: tf.Tensor, anchors: np.ndarray) -> tf.Tensor:
    centre = codes[..., :2] * 0.1 * anchors[:, 2:] + anchors[:, :2]
    half = tf.exp(codes[..., 2:] * 0.2) * anchors[:, 2:] / 2
    return tf.clip_by_value(tf.concat([centre - half, centre + half], -1), 0.0, 1.0)


def single_shot(rng: Rng, suppression: str) -> Served:
    """SSD: boxes and classes of a grid, and one of the suppressions."""
    holder, anchors = _backbone(rng), _anchors()

    def suppress(pair: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, ...]:
        boxes, scores = pair
        best, classes = tf.reduce_max(scores, -1), tf.argmax(scores, -1, tf.int32)
        if suppression == "padded":
            survivors, number = tf.image.non_max_suppression_padded(
                boxes, best, 10, 0.5, 0.3, pad_to_max_output_size=True
            )
        elif suppression == "soft":
            survivors, _ = tf.image.non_max_suppression_with_scores(boxes, best, 10, 0.5, 0.3, 0.5)
            number, survivors = tf.shape(survivors)[0], tf.pad(survivors, [[0, 10 - tf.shape(survivors)[0]]])
        else:
            survivors = tf.image.non_max_suppression(boxes, best, 10, 0.5, 0.3)
            number, survivors = tf.shape(survivors)[0], tf.pad(survivors, [[0, 10 - tf.shape(survivors)[0]]])
        return tf.gather(boxes, survivors), tf.gather(best, survivors), tf.gather(classes, survivors), number

    @tf.function(input_signature=[tf.TensorSpec([None, SIDE, SIDE, 3], tf.float32, name="images")])
    def detect(images: tf.Tensor) -> dict[str, tf.Tensor]:
        features = _features(holder, images)
        boxes = _decode(tf.reshape(tf.nn.conv2d(features, holder.boxes, 1, "SAME"), [-1, 128, 4]), anchors)
        scores = tf.sigmoid(tf.reshape(tf.nn.conv2d(features, holder.classes, 1, "SAME"), [-1, 128, CLASSES]))
        if suppression == "combined":
            names = ("boxes", "scores", "classes", "number")
            return dict(
                zip(
                    names,
                    tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 8, 10, 0.5, 0.3),
                    strict=True,
                )
            )
        specs = (
            tf.TensorSpec([10, 4]),
            tf.TensorSpec([10]),
            tf.TensorSpec([10], tf.int32),
            tf.TensorSpec([], tf.int32),
        )
        boxes, best, classes, number = tf.map_fn(suppress, (boxes, scores), fn_output_signature=specs)
        return {"boxes": boxes, "scores": best, "classes": classes, "number": number}

    return Served(holder, {"serving_default": detect}, _images(rng))


def by_classes(rng: Rng) -> Served:
    """Suppression class by class, in a loop that collects the survivors."""
    holder, anchors = _backbone(rng), _anchors()

    @tf.function(input_signature=[tf.TensorSpec([1, SIDE, SIDE, 3], tf.float32, name="images")])
    def detect(images: tf.Tensor) -> dict[str, tf.Tensor]:
        features = _features(holder, images)
        boxes = _decode(tf.reshape(tf.nn.conv2d(features, holder.boxes, 1, "SAME"), [128, 4]), anchors)
        scores = tf.sigmoid(tf.reshape(tf.nn.conv2d(features, holder.classes, 1, "SAME"), [128, CLASSES]))
        chosen_boxes = tf.TensorArray(tf.int32, 0, dynamic_size=True, infer_shape=False, element_shape=[None])
        for label in tf.range(CLASSES):
            chosen_boxes = chosen_boxes.write(label, tf.image.non_max_suppression(boxes, scores[:, label], 5, 0.5, 0.4))
        survivors = chosen_boxes.concat()
        return {"chosen": survivors, "boxes": tf.gather(boxes, survivors)}

    return Served(
        holder, {"serving_default": detect}, [{"images": normal(rng, 1, SIDE, SIDE, 3, scale=1.0)} for _ in range(2)]
    )


def two_stages(rng: Rng) -> Served:
    """Proposals, crops of features with crop_and_resize, classes and masks of each crop."""
    holder, anchors = _backbone(rng), _anchors()
    holder.head, holder.mask = variable(rng, 256, CLASSES, scale=0.2), variable(rng, 2, 2, 4, 16, scale=0.4)

    @tf.function(input_signature=[tf.TensorSpec([None, SIDE, SIDE, 3], tf.float32, name="images")])
    def detect(images: tf.Tensor) -> dict[str, tf.Tensor]:
        features = _features(holder, images)
        boxes = _decode(tf.reshape(tf.nn.conv2d(features, holder.boxes, 1, "SAME"), [-1, 128, 4]), anchors)
        objectness = tf.reduce_mean(
            tf.reshape(tf.nn.conv2d(features, holder.classes, 1, "SAME"), [-1, 128, CLASSES]), -1
        )
        best = tf.math.top_k(objectness, 5).indices
        proposals = tf.reshape(tf.gather(boxes, best, batch_dims=1), [-1, 4])
        indices = tf.repeat(tf.range(tf.shape(images)[0]), 5)
        crops = tf.image.crop_and_resize(features, proposals, indices, [4, 4])
        shape = tf.stack([tf.shape(crops)[0], 8, 8, 4])
        masks = tf.nn.conv2d_transpose(crops, holder.mask, shape, 2, "SAME")
        return {
            "proposals": proposals,
            "classes": tf.nn.softmax(tf.reshape(crops, [-1, 256]) @ holder.head),
            "masks": tf.sigmoid(masks),
        }

    return Served(holder, {"serving_default": detect}, _images(rng))


def grid_of_boxes(rng: Rng) -> Served:
    """YOLO: offsets in cells, objectness, and the corners of boxes."""
    holder = _backbone(rng)
    holder.out = variable(rng, 1, 1, 16, 2 * (5 + CLASSES), scale=0.3)

    @tf.function(input_signature=[tf.TensorSpec([None, SIDE, SIDE, 3], tf.float32, name="images")])
    def detect(images: tf.Tensor) -> dict[str, tf.Tensor]:
        x = tf.nn.leaky_relu(tf.nn.conv2d(_features(holder, images), holder.out, 1, "SAME"), 0.1)
        x = tf.reshape(x, [-1, 8, 8, 2, 5 + CLASSES])
        xy, wh, objectness, classes = tf.split(x, [2, 2, 1, CLASSES], -1)
        grid = tf.cast(tf.stack(tf.meshgrid(tf.range(8), tf.range(8)), -1), tf.float32)[:, :, None]
        centre = (tf.sigmoid(xy) + grid) / 8
        size = tf.exp(wh) * tf.constant([[0.1, 0.2], [0.3, 0.25]])
        boxes = tf.concat([centre - size / 2, centre + size / 2], -1)
        return {
            "boxes": tf.reshape(boxes, [-1, 128, 4]),
            "scores": tf.reshape(tf.sigmoid(objectness) * tf.nn.softmax(classes), [-1, 128, CLASSES]),
        }

    return Served(holder, {"serving_default": detect}, _images(rng))


def centres(rng: Rng) -> Served:
    """CenterNet: peaks of a heat map by max pooling, and the best of them."""
    holder = _backbone(rng)
    holder.heat = variable(rng, 1, 1, 16, CLASSES, scale=0.2)

    @tf.function(input_signature=[tf.TensorSpec([None, SIDE, SIDE, 3], tf.float32, name="images")])
    def detect(images: tf.Tensor) -> dict[str, tf.Tensor]:
        heat = tf.sigmoid(tf.nn.conv2d(_features(holder, images), holder.heat, 1, "SAME"))
        peaks = tf.where(heat == tf.nn.max_pool2d(heat, 3, 1, "SAME"), heat, 0.0)
        scores, places = tf.math.top_k(tf.reshape(peaks, [tf.shape(images)[0], -1]), 6)
        cells = places // CLASSES
        return {"scores": scores, "classes": places % CLASSES, "y": cells // 8, "x": cells % 8}

    return Served(holder, {"serving_default": detect}, _images(rng))


def pyramid(rng: Rng) -> Served:
    """A feature pyramid: upsampled and added maps of three strides."""
    holder = tf.Module()
    holder.down = [variable(rng, 3, 3, 3 if level == 0 else 8, 8, scale=0.3) for level in range(3)]
    holder.side = [variable(rng, 1, 1, 8, 6, scale=0.3) for _ in range(3)]

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.float32, name="images")])
    def extract(images: tf.Tensor) -> dict[str, tf.Tensor]:
        maps, x = [], images
        for kernel in holder.down:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 2, "SAME"))
            maps.append(x)
        top, outputs = None, {}
        for level in (2, 1, 0):
            lateral = tf.nn.conv2d(maps[level], holder.side[level], 1, "SAME")
            top = lateral if top is None else lateral + tf.image.resize(top, tf.shape(lateral)[1:3], "nearest")
            outputs[f"p{level}"] = top
        return outputs

    return Served(
        holder,
        {"serving_default": extract},
        [{"images": normal(rng, 2, 32, 40, 3, scale=1.0)}, {"images": normal(rng, 1, 24, 16, 3, scale=1.0)}],
    )


def overlaps(rng: Rng) -> Served:
    """Matching of boxes by their overlaps, as targets are made."""
    holder = tf.Module()

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 4], tf.float32, name="boxes"),
            tf.TensorSpec([None, 4], tf.float32, name="truth"),
        ]
    )
    def match(boxes: tf.Tensor, truth: tf.Tensor) -> dict[str, tf.Tensor]:
        low = tf.maximum(boxes[:, None, :2], truth[None, :, :2])
        high = tf.minimum(boxes[:, None, 2:], truth[None, :, 2:])
        common = tf.reduce_prod(tf.maximum(high - low, 0.0), -1)
        areas = [tf.reduce_prod(tensor[:, 2:] - tensor[:, :2], -1) for tensor in (boxes, truth)]
        ratio = tf.math.divide_no_nan(common, areas[0][:, None] + areas[1][None] - common)
        best = tf.argmax(ratio, 1, tf.int32)
        labels = tf.where(tf.reduce_max(ratio, 1) > 0.3, best, -1)
        return {
            "ratio": ratio,
            "labels": labels,
            "forced": tf.tensor_scatter_nd_update(labels, tf.argmax(ratio, 0)[:, None], tf.range(tf.shape(truth)[0])),
        }

    def boxes(number: int) -> np.ndarray:
        low = rng.uniform(0, 0.6, (number, 2))
        return np.concatenate([low, low + rng.uniform(0.1, 0.4, (number, 2))], 1).astype(np.float32)

    return Served(holder, {"serving_default": match}, [{"boxes": boxes(12), "truth": boxes(3)}])

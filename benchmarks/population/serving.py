"""Serving signatures that decode their inputs: tf.Example, images, CSV, base64, text."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import Served
from weights import Rng, normal, variable

STRINGS = tf.TensorSpec([None], tf.string)


def _image(rng: Rng, height: int, width: int, channels: int = 3) -> np.ndarray:
    """A smooth image, as codecs expect."""
    coarse = rng.uniform(0, 255, (4, 4, channels)).astype(np.float32)
    return tf.cast(tf.clip_by_value(tf.image.resize(coarse, [height, width]), 0, 255), tf.uint8).numpy()


def _texts(values: list[bytes]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _example(rng: Rng, with_city: bool = True) -> bytes:
    features = {
        "age": tf.train.Feature(float_list=tf.train.FloatList(value=[float(rng.uniform(1, 90))])),
        "scores": tf.train.Feature(float_list=tf.train.FloatList(value=rng.normal(0, 1, 3).tolist())),
        "clicks": tf.train.Feature(
            int64_list=tf.train.Int64List(value=rng.integers(0, 9, rng.integers(0, 5)).tolist())
        ),
    }
    if with_city:
        features["city"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"Bern"]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def parsed_examples(rng: Rng) -> Served:
    """Dense features with defaults, and a sparse one as counts."""
    holder = tf.Module()
    holder.w, holder.clicks = variable(rng, 4, 3), variable(rng, 9, 3, scale=1.0)
    spec = {
        "age": tf.io.FixedLenFeature([1], tf.float32),
        "scores": tf.io.FixedLenFeature([3], tf.float32),
        "city": tf.io.FixedLenFeature([], tf.string, "Basel"),
        "clicks": tf.io.VarLenFeature(tf.int64),
    }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def classify(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        row = tf.io.parse_example(examples, spec)
        dense = tf.concat([row["age"] / 50.0, row["scores"]], 1) @ holder.w
        embedded = tf.nn.embedding_lookup_sparse(holder.clicks, tf.sparse.fill_empty_rows(row["clicks"], 0)[0], None)
        return {"logits": dense + embedded, "city": row["city"]}

    rows = _texts([_example(rng), _example(rng, with_city=False), _example(rng)])
    return Served(holder, {"serving_default": classify}, [{"examples": rows}, {"examples": rows[:1]}])


def ragged_examples(rng: Rng) -> Served:
    """A ragged feature, as its row lengths and sums."""
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def parse(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        row = tf.io.parse_example(examples, {"clicks": tf.io.RaggedFeature(tf.int64)})["clicks"]
        return {"lengths": row.row_lengths(), "sums": tf.reduce_sum(row, 1), "padded": row.to_tensor(-1)}

    return Served(holder, {"serving_default": parse}, [{"examples": _texts([_example(rng) for _ in range(4)])}])


def one_example(rng: Rng) -> Served:
    """parse_single_example."""
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, name="example")])
    def parse(example: tf.Tensor) -> dict[str, tf.Tensor]:
        row = tf.io.parse_single_example(
            example, {"scores": tf.io.FixedLenFeature([3], tf.float32), "clicks": tf.io.VarLenFeature(tf.int64)}
        )
        return {"scores": row["scores"] * 2, "clicks": tf.sparse.to_dense(row["clicks"])}

    return Served(holder, {"serving_default": parse}, [{"example": np.array(_example(rng), object)} for _ in range(2)])


def sequence_examples(rng: Rng) -> Served:
    def sequence(length: int) -> bytes:
        steps = [
            tf.train.Feature(float_list=tf.train.FloatList(value=rng.normal(0, 1, 2).tolist())) for _ in range(length)
        ]
        return tf.train.SequenceExample(
            context=tf.train.Features(feature={"id": tf.train.Feature(int64_list=tf.train.Int64List(value=[length]))}),
            feature_lists=tf.train.FeatureLists(feature_list={"steps": tf.train.FeatureList(feature=steps)}),
        ).SerializeToString()

    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def parse(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        context, steps, lengths = tf.io.parse_sequence_example(
            examples,
            {"id": tf.io.FixedLenFeature([], tf.int64)},
            {"steps": tf.io.FixedLenSequenceFeature([2], tf.float32)},
        )
        return {"id": context["id"], "steps": steps["steps"], "lengths": lengths["steps"]}

    return Served(holder, {"serving_default": parse}, [{"examples": _texts([sequence(3), sequence(1), sequence(5)])}])


def decoded_images(rng: Rng, codec: str, side: int = 24) -> Served:
    """Bytes of images through map_fn: decoded, resized, scaled, and a convolution."""
    holder = tf.Module()
    holder.kernel = variable(rng, 3, 3, 3, 4)
    encode = tf.io.encode_jpeg if codec == "jpeg" else tf.io.encode_png
    decode = {
        "jpeg": tf.io.decode_jpeg,
        "png": tf.io.decode_png,
        "any": lambda data, channels: tf.io.decode_image(data, channels, expand_animations=False),
    }[codec]

    def load(data: tf.Tensor) -> tf.Tensor:
        image = tf.image.convert_image_dtype(decode(data, channels=3), tf.float32)
        return tf.ensure_shape(tf.image.resize(image, [side, side], antialias=codec == "png"), [side, side, 3])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="images")])
    def classify(images: tf.Tensor) -> dict[str, tf.Tensor]:
        pixels = tf.map_fn(load, images, fn_output_signature=tf.float32)
        return {
            "logits": tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(pixels, holder.kernel, 2, "SAME")), [1, 2]),
            "pixels": pixels,
        }

    images = _texts([encode(_image(rng, height, width)).numpy() for height, width in ((40, 30), (17, 50))])
    return Served(holder, {"serving_default": classify}, [{"images": images}, {"images": images[:1]}])


def encoded_image(rng: Rng) -> Served:
    """Pixels in, bytes of a PNG and base64 out."""
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3], tf.uint8, name="image")])
    def encode(image: tf.Tensor) -> dict[str, tf.Tensor]:
        grey = tf.image.rgb_to_grayscale(image)
        again = tf.io.decode_png(tf.io.encode_png(grey))
        return {
            "grey": again,
            "text": tf.io.encode_base64(tf.strings.as_string(tf.reduce_sum(tf.cast(image, tf.int32)))),
        }

    return Served(holder, {"serving_default": encode}, [{"image": _image(rng, 9, 7)}, {"image": _image(rng, 4, 5)}])


def csv_rows(rng: Rng) -> Served:
    holder = tf.Module()
    holder.w = variable(rng, 2, 3)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="rows")])
    def parse(rows: tf.Tensor) -> dict[str, tf.Tensor]:
        name, a, b, number = tf.io.decode_csv(rows, ["none", 0.5, 0.0, tf.constant([7], tf.int64)])
        return {"name": name, "y": tf.stack([a, b], 1) @ holder.w, "number": number}

    rows = _texts([b'"Bern, city",1.5,-2,3', b"Basel,,4.25,", b",1e-2,3,12"])
    return Served(holder, {"serving_default": parse}, [{"rows": rows}])


def cleaned_texts(rng: Rng) -> Served:
    """Strings cleaned by regular expressions, split, joined, measured and hashed."""
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
    def clean(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        lower = tf.strings.regex_replace(tf.strings.lower(tf.strings.strip(texts)), r"[^a-z0-9 äöü]+", "")
        words = tf.strings.split(lower)
        return {
            "clean": lower,
            "lengths": tf.strings.length(lower, "UTF8_CHAR"),
            "words": words.row_lengths(),
            "first": tf.strings.substr(lower, 0, 3),
            "joined": tf.strings.reduce_join(words.to_tensor(""), 1, separator="-"),
            "bucket": tf.strings.to_hash_bucket_fast(lower, 1000),
            "long": tf.strings.regex_full_match(lower, ".{12,}"),
            "codes": tf.strings.unicode_decode(lower, "UTF-8").to_tensor(0),
        }

    texts = _texts([b"  The Film, was GOOD! ", "Größe für Äpfel".encode(), b"", b"a-b c"])
    return Served(holder, {"serving_default": clean}, [{"texts": texts}, {"texts": texts[1:2]}])


def raw_bytes(rng: Rng) -> Served:
    """decode_raw, bitcast and numbers as strings."""
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="blobs")])
    def decode(blobs: tf.Tensor) -> dict[str, tf.Tensor]:
        numbers = tf.io.decode_raw(blobs, tf.float32)
        return {
            "numbers": numbers,
            "bits": tf.bitcast(numbers, tf.int32),
            "texts": tf.strings.as_string(numbers, precision=3),
            "back": tf.strings.to_number(tf.strings.as_string(tf.bitcast(numbers, tf.int32)), tf.int64),
        }

    blobs = _texts([normal(rng, 4, scale=1.0).tobytes() for _ in range(3)])
    return Served(holder, {"serving_default": decode}, [{"blobs": blobs}])

"""Metadata of ops that encode numbers and images as strings, or decode them."""

from __future__ import annotations

from heald.api import Attrs, DType, InvalidArgument, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import count_in, dims_of_rank, vector

COMPRESSIONS = ("", "GZIP", "ZLIB", "ZSTD")


@rule("DecodeRaw")
def decode_raw(attrs: Attrs, strings: ValueInfo) -> ValueInfo:
    return info(attrs["out_type"], None if strings.shape is None else (*strings.shape, None))


@rule("DecodePaddedRaw", values=("fixed_length",))
def decode_padded_raw(attrs: Attrs, strings: ValueInfo, fixed_length: ValueInfo) -> ValueInfo:
    dtype: DType = attrs["out_type"]
    length = count_in(fixed_length, "fixed_length", least=1)
    if length is not None and length % dtype.itemsize:
        raise InvalidArgument(f"fixed_length ({length}) must be a multiple of the size of out_type ({dtype.itemsize})")
    width = None if length is None else length // dtype.itemsize
    return info(dtype, None if strings.shape is None else (*strings.shape, width))


@rule("DecodeCompressed")
def decode_compressed(attrs: Attrs, strings: ValueInfo) -> ValueInfo:
    if attrs["compression_type"] not in COMPRESSIONS:
        raise InvalidArgument(f"Only ZLIB, ZSTD, GZIP and '' are supported compressions, given "
                              f"'{attrs['compression_type']}'")
    return info(strings.dtype, strings.shape)


@rule("DecodeBmp", "DecodePng")
def decode_still(attrs: Attrs, contents: ValueInfo) -> ValueInfo:
    return info(_decoded_type(attrs, contents), (None, None, attrs["channels"] or None))


@rule("DecodeJpeg")
def decode_jpeg(attrs: Attrs, contents: ValueInfo) -> ValueInfo:
    if attrs["ratio"] not in (1, 2, 4, 8):
        raise InvalidArgument(f"ratio must be 1, 2, 4 or 8, given {attrs['ratio']}")
    if attrs["dct_method"] not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise InvalidArgument(f"dct_method '{attrs['dct_method']}' is none of INTEGER_FAST and INTEGER_ACCURATE")
    return decode_still(attrs, contents)


@rule("DecodeAndCropJpeg", values=("crop_window",))
def decode_and_crop_jpeg(attrs: Attrs, contents: ValueInfo, crop_window: ValueInfo) -> ValueInfo:
    """`crop_window` lists the first row and column, height, width."""
    image, window = decode_jpeg(attrs, contents), vector(crop_window, "crop_window")
    if window is None:
        return image
    if len(window) != 4:
        raise InvalidArgument(f"crop_window must have four elements, given {len(window)}")
    if any(n is not None and n < least for n, least in zip(window, (0, 0, 1, 1), strict=True)):
        raise InvalidArgument(f"crop_window {list(window)} is empty or begins outside the image")
    return info(image.dtype, (*window[2:], attrs["channels"] or None))


@rule("DecodeWebP")
def decode_webp(attrs: Attrs, contents: ValueInfo) -> ValueInfo:
    return info(_decoded_type(attrs, contents), (None, None, None, attrs["channels"] or None))


@rule("ExtractJpegShape")
def extract_jpeg_shape(attrs: Attrs, contents: ValueInfo) -> ValueInfo:
    dims_of_rank(contents, 0, "contents")
    return info(attrs["output_type"], (3,))


@rule("DecodeGif")
def decode_gif(_: Attrs, contents: ValueInfo) -> ValueInfo:
    dims_of_rank(contents, 0, "contents")
    return info(dtypes.uint8, (None, None, None, 3))


@rule("DecodeImage")
def decode_image(attrs: Attrs, contents: ValueInfo) -> ValueInfo:
    """The output's rank is unknown: images have rank 3, expanded animations rank 4."""
    return info(_decoded_type(attrs, contents), None)


def _decoded_type(attrs: Attrs, contents: ValueInfo) -> DType:
    dims_of_rank(contents, 0, "contents")
    if attrs["channels"] not in (0, 1, 3, 4):
        raise InvalidArgument(f"channels must be 0, 1, 3 or 4, given {attrs['channels']}")
    dtype: DType = attrs.get("dtype", dtypes.uint8)
    return dtype


@rule("EncodePng")
def encode_png(attrs: Attrs, images: ValueInfo) -> ValueInfo:
    """The output has a string for each image."""
    if not -1 <= attrs["compression"] <= 9:
        raise InvalidArgument(f"compression should be in [-1, 9], given {attrs['compression']}")
    if images.shape is None:
        return info(dtypes.string, None)
    if len(images.shape) < 3:
        raise InvalidArgument(f"images must have at least rank 3, given shape {shape_text(images.shape)}")
    if images.shape[-1] not in (None, 1, 2, 3, 4):
        raise InvalidArgument(f"images must have 1, 2, 3 or 4 channels, given {images.shape[-1]}")
    return info(dtypes.string, images.shape[:-3])


CHANNELS = {"": (None, 1, 3), "grayscale": (None, 1), "rgb": (None, 3)}


@rule("EncodeJpeg")
def encode_jpeg(attrs: Attrs, image: ValueInfo) -> ValueInfo:
    if not 0 <= attrs["quality"] <= 100:
        raise InvalidArgument(f"quality must be in [0, 100], given {attrs['quality']}")
    *_lengths, channels = dims_of_rank(image, 3, "image")
    if channels not in CHANNELS[attrs["format"]]:
        raise InvalidArgument(f"format '{attrs['format']}' does not take {channels} channels")
    return info(dtypes.string, ())

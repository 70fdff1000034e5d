"""Kernels that decode strings to numbers or images, and encode images. JPEGs need simplejpeg, most others Pillow.

JPEGs are decoded as TensorFlow decodes them, by the same libjpeg-turbo. Encoded JPEGs have other bytes. The image size
in a header is checked before memory is requested.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np
from heald.api import Bind, Declined, Kernels, Library, dtypes, errors, install_hint

from ..element_types import Array

Run = Callable[..., Any]
Ask = Callable[[int, str], None]  # as Bind.ask
T = TypeVar("T")
LARGEST_IMAGE_ELEMENTS = 1 << 29  # elements of a decoded image: TensorFlow's limit
DECODED = 4  # bytes per element during decoding: Pillow's pixels, the array, the result
# element types, and the types that are read and byte-swapped in their place
PARTS: dict[str, Any] = {"bool": np.uint8, "complex64": np.float32, "complex128": np.float64}
PILLOW = Library("Pillow", "PIL", "pillow")
SIMPLEJPEG = Library("simplejpeg", "simplejpeg", "simplejpeg")


def decode_raw(b: Bind) -> Run:
    """DecodeRaw. Bytes of complex numbers are swapped part by part. A nonzero byte is true."""
    dtype, swapped = b.attrs["out_type"].numpy, not b.attrs["little_endian"]
    parts = PARTS.get(b.attrs["out_type"].name, dtype)

    def run(strings: Array) -> Array:
        texts: list[bytes] = list(strings.reshape(-1))
        length = len(texts[0]) if texts else 0
        if any(len(text) != length for text in texts):
            raise errors.InvalidArgument("DecodeRaw requires input strings to all be the same size")
        if length % dtype.itemsize:
            raise errors.InvalidArgument(f"Input to DecodeRaw has length {length} that is not a multiple of "
                                         f"{dtype.itemsize}, the size of {dtype}")
        numbers = np.frombuffer(bytearray(b"".join(texts)), parts)
        numbers = numbers.byteswap() if swapped else numbers
        numbers = numbers != 0 if dtype.kind == "b" else numbers.view(dtype)
        return numbers.reshape(*strings.shape, length // dtype.itemsize)

    return run


# Images as files hold them


class Decoded(NamedTuple):
    """A decoded image. `frames`: [frames, rows, columns, channels], with several frames only if the format has frames.
    `step`: the difference in uint16 that equals 1 in uint8."""

    frames: Array
    step: int = 256
    has_frames: bool = False


def _check_size(ask: Ask, *lengths: int) -> None:
    if min(lengths) <= 0 or prod(lengths) >= LARGEST_IMAGE_ELEMENTS:
        raise errors.InvalidArgument(f"an image of size {lengths} is empty or too large")
    ask(prod(lengths) * DECODED, f"an image of size {lengths}")


def decode_bmp(ask: Ask, contents: bytes, channels: int, _wide: bool) -> Decoded:
    """Uncompressed: blue, green, red and perhaps alpha, or gray; rows from the bottom up unless the height is
    negative."""
    if len(contents) < 32:
        raise errors.InvalidArgument("Incomplete bmp content, requires at least 32 bytes")
    (start,), (width, height), (bits,) = (
        struct.unpack_from(form, contents, at) for form, at in (("<i", 10), ("<ii", 18), ("<h", 28)))
    depth, rows = bits // 8, abs(height)
    if channels == 1:
        raise errors.InvalidArgument("channels must be 0, 3 or 4 for BMP, given 1")
    if depth not in (1, 3, 4):
        raise errors.InvalidArgument(f"Number of channels inherent in the image must be 1, 3 or 4, was {depth}")
    _check_size(ask, width, rows, channels or depth)
    stride = (width * depth + 3) // 4 * 4
    if start < 0 or len(contents) != start + stride * rows:
        raise errors.InvalidArgument(f"Input size should be {start + stride * rows}, but is {len(contents)}")
    lines = np.frombuffer(contents, np.uint8, stride * rows, start).reshape(rows, stride)
    image = lines[:, : width * depth].reshape(rows, width, depth)[:: 1 if height < 0 else -1]
    image = image[:, :, [2, 1, 0, 3][:depth]] if depth > 1 else image
    return Decoded(_with_channels(image, channels)[None])


def _with_channels(image: Array, channels: int, opaque: int = 255) -> Array:
    """The image with this number of channels: gray or colors, with or without alpha. 0 keeps the image as it is."""
    depth = image.shape[2]
    channels = channels or depth
    color, alpha = image[:, :, : depth - (depth + 1) % 2], image[:, :, depth - (depth + 1) % 2 :]
    if channels < 3 <= depth:
        color = _gray(color)
    elif depth < 3 <= channels:
        color = np.repeat(color, 3, 2)
    if channels % 2:
        return color
    return np.concatenate([color, alpha if depth % 2 == 0 else np.full_like(color[:, :, :1], opaque)], 2)


def _gray(color: Array) -> Array:
    """Gray with libpng's weights of the colors, in fixed point. 16-bit results are rounded, 8-bit ones truncated."""
    total = color.astype(np.int64) @ np.array([9797, 19234, 3737])
    gray: Array = (total + (16384 if color.dtype == np.uint16 else 0)) >> 15
    return gray.astype(color.dtype)[:, :, None]


def decode_png(ask: Ask, contents: bytes, channels: int, wide: bool) -> Decoded:
    from PIL.PngImagePlugin import PngImageFile

    if b"IEND" not in contents:
        raise errors.InvalidArgument("Invalid PNG data: it is truncated")
    image = PngImageFile(BytesIO(contents))
    deep, kind = contents[24] == 16, contents[25]
    _check_size(ask, image.width, image.height, channels or 4)
    if deep and wide:
        return Decoded(_with_channels(_sixteen_bits(image, contents, kind), channels, 65535)[None], 1)
    clear = "transparency" in image.info
    if image.mode.startswith("I"):
        pixels = (np.asarray(image) >> 8).astype(np.uint8)
    elif image.mode == "P" or (clear and channels == 4):
        pixels = np.asarray(image.convert("RGBA" if clear else "RGB"))
    else:
        pixels = np.asarray(image.convert("L") if image.mode == "1" else image)
    return Decoded(_with_channels(pixels.reshape(*pixels.shape[:2], -1), channels)[None], 257)


def _sixteen_bits(image: Any, contents: bytes, kind: int) -> Array:
    """16-bit elements of a PNG. Of each color number Pillow returns the first byte only, or the second if it reads
    little-endian."""
    from PIL.PngImagePlugin import PngImageFile

    if image.mode.startswith("I"):
        return np.asarray(image).astype(np.uint16)[:, :, None]
    if kind == 4:
        raise errors.Unimplemented("a PNG of gray and alpha is decoded to 8 bits only")
    low = PngImageFile(BytesIO(contents))
    low.tile = [tile._replace(args=str(tile.args).replace("16B", "16L")) for tile in low.tile]
    pixels: Array = np.asarray(image).astype(np.uint16) << 8 | np.asarray(low)
    return pixels


END_OF_IMAGE = b"\xff\xd9"
CMYK = ("CMYK", "YCCK")


class JpegOptions(NamedTuple):
    """The attributes of a node about JPEGs. TensorFlow's default is the fast transform, unlike libjpeg's."""

    ratio: int = 1
    dct_method: str = ""
    fancy_upscaling: bool = True
    try_recover_truncated: bool = False


DEFAULT_JPEG_OPTIONS = JpegOptions()


def decode_jpeg(
    ask: Ask, contents: bytes, channels: int, _wide: bool, options: JpegOptions = DEFAULT_JPEG_OPTIONS
) -> Decoded:
    """The colors of CMYK are stored inverted, and black scales them: each color is c * k // 255."""
    import simplejpeg

    if channels == 4:
        raise errors.InvalidArgument("JPEG does not support 4 channels")
    if options.try_recover_truncated:
        contents += END_OF_IMAGE  # libjpeg fills the blocks that it lacks
    height, width, space, _ = simplejpeg.decode_jpeg_header(contents)
    _check_size(ask, width, height, channels or 3)
    if channels == 1 and space in CMYK:
        raise errors.InvalidArgument("a JPEG of CMYK colors cannot be decoded as gray")
    target = "CMYK" if space in CMYK else "GRAY" if channels == 1 or (channels == 0 and space == "Gray") else "RGB"
    pixels = simplejpeg.decode_jpeg(
        contents, target, fastdct=options.dct_method != "INTEGER_ACCURATE", fastupsample=not options.fancy_upscaling,
        strict=not options.try_recover_truncated, min_height=-(-height // options.ratio),
        min_width=-(-width // options.ratio), min_factor=options.ratio)
    if target == "CMYK":
        wide = pixels.astype(np.uint16)
        pixels = (wide[:, :, :3] * wide[:, :, 3:] // 255).astype(np.uint8)
    return Decoded(pixels[None])


def decode_gif(ask: Ask, contents: bytes, channels: int, _wide: bool) -> Decoded:
    from PIL.GifImagePlugin import GifImageFile

    if channels not in (0, 3):
        raise errors.InvalidArgument(f"channels must be 0 or 3 for GIF, given {channels}")
    image = GifImageFile(BytesIO(contents))
    _check_size(ask, image.n_frames, image.width, image.height, 3)
    frames = np.empty((image.n_frames, image.height, image.width, 3), np.uint8)
    for n in range(image.n_frames):
        image.seek(n)
        frame = np.asarray(image.convert("RGBA"))
        frames[n] = np.where(frame[:, :, 3:] > 0, frame[:, :, :3], frames[n - 1] if n else 0)
    return Decoded(frames, has_frames=True)


def decode_webp(ask: Ask, contents: bytes, channels: int, wide: bool) -> Decoded:
    from PIL.WebPImagePlugin import WebPImageFile

    image = WebPImageFile(BytesIO(contents))
    depth = len(image.mode)
    if wide or channels not in (0, depth):
        raise errors.InvalidArgument(f"this WebP image decodes to uint8 and {depth} channels only")
    count = getattr(image, "n_frames", 1)
    _check_size(ask, count, image.width, image.height, depth)
    frames = np.empty((count, image.height, image.width, depth), np.uint8)
    for n in range(count):
        image.seek(n)
        frames[n] = np.asarray(image)
    return Decoded(frames, has_frames=True)


SIGNATURES = ((b"\xff\xd8\xff", decode_jpeg), (b"\x89PNG\r\n\x1a\n", decode_png), (b"GIF8", decode_gif),
              (b"BM", decode_bmp), (b"RIFF", decode_webp))
USUAL = (decode_gif, decode_jpeg, decode_png)  # the formats that DecodeGif, DecodeJpeg and DecodePng all decode
DECODERS: dict[str, tuple[Callable[..., Decoded], ...]] = {
    "DecodeAndCropJpeg": (decode_jpeg,), "DecodeBmp": (decode_bmp,), "DecodeGif": USUAL,
    "DecodeImage": (*USUAL, decode_bmp, decode_webp), "DecodeJpeg": USUAL, "DecodePng": USUAL,
    "DecodeWebP": (decode_webp,),
}


def _decode(b: Bind, contents: bytes) -> Decoded:
    decoder = next((candidate for signature, candidate in SIGNATURES if contents.startswith(signature)), None)
    if decoder is None:
        raise errors.InvalidArgument("Unknown image file format. One of JPEG, PNG, GIF, BMP, WebP required")
    if decoder not in DECODERS[b.op]:
        raise errors.InvalidArgument(f"{b.op} does not decode this format: {decoder.__name__} or decode_image does")
    names = [name for name in JpegOptions._fields if name in b.attrs] if decoder is decode_jpeg else []
    options = {"options": JpegOptions(**{name: b.attrs[name] for name in names})} if names else {}
    wide = b.attrs.get("dtype", dtypes.uint8) is not dtypes.uint8
    return _run_decoder(lambda: decoder(b.ask, contents, b.attrs.get("channels", 0), wide, **options), contents)


def _run_decoder(decoder: Callable[[], T], contents: bytes) -> T:
    """The decoder's result.

    Raises InvalidArgument for each exception of Pillow and simplejpeg for broken files, Unimplemented without the one
    that the format needs.
    """
    try:
        return decoder()
    except errors.HealdError:
        raise
    except ImportError as error:
        library = SIMPLEJPEG if error.name == SIMPLEJPEG.module else PILLOW
        raise errors.Unimplemented(f"this image needs {library.name}", hint=install_hint(library.requirement)) from None
    except (OSError, SyntaxError, EOFError, ValueError, struct.error, zlib.error) as error:
        raise errors.InvalidArgument(f"Invalid image data, size {len(contents)}: {error}") from error


def decode(b: Bind) -> Run:
    framed = b.op in ("DecodeGif", "DecodeWebP")
    expand = framed or b.attrs.get("expand_animations", False)
    dtype = b.outputs[0].dtype.numpy

    def run(contents: Array, *window: Array) -> Array:
        decoded = _decode(b, contents.item())
        frames = decoded.frames
        if len(frames) > 1 and b.op in ("DecodeJpeg", "DecodePng"):
            raise errors.InvalidArgument("animated GIFs are decoded by DecodeGif and DecodeImage only")
        if not framed and not (decoded.has_frames and expand):
            frames = frames[0]
        return _convert_samples(_crop(frames, *window[0].tolist()) if window else frames, decoded.step, dtype)

    return run


def _crop(image: Array, top: int, left: int, height: int, width: int) -> Array:
    if top + height > image.shape[0] or left + width > image.shape[1]:
        raise errors.InvalidArgument(f"the crop window reaches beyond an image of shape {image.shape}")
    return image[top : top + height, left : left + width]


def extract_jpeg_shape(_: Bind) -> Run:
    """Height, width and channels as the file has them."""

    def run(contents: Array, out: Array) -> None:
        import simplejpeg

        header = _run_decoder(lambda: simplejpeg.decode_jpeg_header(contents.item()), contents.item())
        out[:] = *header[:2], {"Gray": 1, "CMYK": 4, "YCCK": 4}.get(header[2], 3)

    return run


def _convert_samples(image: Array, step: int, dtype: Any) -> Array:
    if dtype == np.uint8:
        return image.astype(np.uint8)
    if dtype == np.uint16:
        return image.astype(np.uint16) * np.uint16(step)
    return image.astype(np.float32) * np.float32(1 / np.iinfo(image.dtype).max)


# Encoding

PNG_COLORS = {1: 0, 2: 4, 3: 2, 4: 6}  # color types by channels


def encode_png(b: Bind) -> Run:
    """EncodePng: lossless and readable everywhere, but not libpng's choice of bytes."""
    level, shape = b.attrs["compression"], b.inputs[0].meta.dims
    if 0 in shape[-3:] and b.outputs[0].size:
        raise errors.InvalidArgument(f"PNG encoding failed: an image of shape {shape[-3:]} is empty")

    def run(images: Array, out: Array) -> None:
        encoded = out.reshape(-1)
        for n, image in enumerate(images.reshape(-1, *shape[-3:])):
            encoded[n] = _png(image, level)

    return run


def _png(image: Array, level: int) -> bytes:
    """W3C Portable Network Graphics, third edition; each row as its difference from the one above (filter 2)."""
    height, width, channels = image.shape
    lines = image.astype(image.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    filtered = np.full((height, 1 + lines.shape[1]), 2, np.uint8)
    filtered[:, 1:] = np.diff(lines, axis=0, prepend=np.uint8(0))
    header = struct.pack(">IIBBBBB", width, height, 8 * image.itemsize, PNG_COLORS[channels], 0, 0, 0)
    body = zlib.compress(filtered.tobytes(), level)
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_chunk, (b"IHDR", b"IDAT", b"IEND"), (header, body, b"")))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def encode_jpeg(b: Bind) -> Run | Declined:
    if b.inputs[0].size == 0:
        raise errors.InvalidArgument("JPEG encoding failed: the image is empty")
    a = b.attrs
    inch = 1 if a["density_unit"] == "in" else 2.54
    xmp = a["xmp_metadata"].encode("utf-8", "surrogateescape")
    options = {
        "quality": max(a["quality"], 1), "progressive": a["progressive"], "optimize": a["optimize_size"],
        "subsampling": 2 if a["chroma_downsampling"] else 0,
        "dpi": (round(a["x_density"] * inch), round(a["y_density"] * inch)), "xmp": xmp,
    }

    def run(image: Array, out: Array) -> None:
        from PIL import Image

        stream = BytesIO()
        Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(stream, "JPEG", **options)
        out[()] = stream.getvalue()

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("DecodeRaw", allocates=True)(decode_raw)
    for op in DECODERS:
        first_format = DECODERS[op][0] if op != "DecodeJpeg" else decode_jpeg
        library = {decode_bmp: None, decode_jpeg: SIMPLEJPEG}.get(first_format, PILLOW)
        kernels.kernel(op, allocates=True, library=library)(decode)
    kernels.kernel("ExtractJpegShape", library=SIMPLEJPEG)(extract_jpeg_shape)
    kernels.kernel("EncodePng")(encode_png)
    kernels.kernel("EncodeJpeg", library=PILLOW)(encode_jpeg)

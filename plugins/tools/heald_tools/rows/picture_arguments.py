"""The options of `heald run` about pictures."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from fractions import Fraction
from typing import Any

from heald.errors import InvalidArgument

from .preprocessing import INTERPOLATIONS, PRESETS, Numbers, Preprocessing


def add_preprocessing(parser: Any) -> None:
    parser.add_argument("--resize", type=_sizes, metavar="N|HxW",
                        help="the shorter side of pictures, or height and width (by default the input's)")
    parser.add_argument("--crop", type=_sizes, metavar="N|HxW", help="the middle of pictures, behind --resize")
    parser.add_argument("--interpolation", choices=INTERPOLATIONS, default="bilinear",
                        help="between pixels of resized pictures (bilinear)")
    parser.add_argument("--no-antialias", action="store_true", help="pick pixels of pictures that shrink, average none")
    parser.add_argument("--preset", choices=sorted(PRESETS),
                        help="the range of pixels, as Keras's preprocess_input has it: tf -1 to 1, torch, caffe")
    parser.add_argument("--rescale", type=_factor_and_offset, metavar="F[,OFFSET]",
                        help="multiply pixels, and add: 1/255, or 1/127.5,-1")
    parser.add_argument("--mean", type=_numbers, default=(), metavar="A,B,C",
                        help="subtract from the channels, in the model's order")
    parser.add_argument("--std", type=_numbers, default=(), metavar="A,B,C", help="divide the channels by these")
    parser.add_argument("--bgr", action="store_true", help="channels in the order blue, green, red")


def preprocessing_of(args: Namespace) -> Preprocessing:
    """The preprocessing that the options say. Raises InvalidArgument for options that exclude each other."""
    own = args.rescale or args.mean or args.std or args.bgr
    if args.preset is not None and own:
        raise InvalidArgument("--preset says the range of pixels, and so do --rescale, --mean, --std and --bgr",
                              hint="give either")
    numbers = PRESETS[args.preset] if args.preset is not None else None
    if own:
        scale, offset = args.rescale or (1.0, 0.0)
        numbers = Numbers(scale, offset, args.mean, args.std, args.bgr)
    crop = (args.crop * 2)[:2] if args.crop is not None else None
    return Preprocessing(args.resize, crop, args.interpolation, not args.no_antialias, numbers)


def _sizes(text: str) -> tuple[int, ...]:
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.isdigit() and 0 < int(part) < 1 << 16 for part in parts):
        raise ArgumentTypeError(f"'{text}' is neither a number of pixels nor HEIGHTxWIDTH, such as 224x224")
    return tuple(int(part) for part in parts)


def _factor_and_offset(text: str) -> tuple[float, float]:
    numbers = _numbers(text)
    if len(numbers) > 2:
        raise ArgumentTypeError(f"'{text}' is not a factor and an offset, such as 1/127.5,-1")
    return (*numbers, 0.0)[:2]  # type: ignore[return-value]


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(_number(part) for part in text.split(","))
    except (ValueError, ZeroDivisionError):
        raise ArgumentTypeError(f"'{text}' is no list of numbers, such as 0.5,0.5,0.5 or 1/255") from None


def _number(text: str) -> float:
    numerator, slash, denominator = text.partition("/")
    return float(Fraction(numerator.strip()) / Fraction(denominator.strip())) if slash else float(text)

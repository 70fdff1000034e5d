"""The options of `heald run` about answers: labels, detections and pictures."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from math import isfinite
from typing import Any, NamedTuple

from heald.api.cli import positive
from heald.errors import InvalidArgument

from .drawing import DRAWINGS
from .labels import read_labels
from .output_places import is_of_pictures
from .results import Labels


class OutputOptions(NamedTuple):
    """`labels`: The names of the classes of an output. `top`: Labels of a row.

    `threshold`: The least score of a detection; None where the user gives none.
    `draw`: Drawings on the pictures of the rows. `output_range`: The range of outputs that become pictures.
    `from_folders`: The folders of pictures name their classes.
    """

    labels: Labels | None = None
    top: int = 5
    threshold: float | None = None
    from_folders: bool = False
    draw: tuple[str, ...] = ()
    output_range: tuple[float, float] | None = None


def add_output_options(parser: Any) -> None:
    parser.add_argument("--labels", metavar="FILE", help="the names of classes, one a line: the best become columns")
    parser.add_argument("--top", type=positive, default=5, metavar="N", help="labels of a row (5)")
    parser.add_argument("--labels-from-folders", action="store_true",
                        help="photos/cat/1.jpg is a cat: a column more, and the accuracy at the end")
    parser.add_argument("--threshold", type=_share, metavar="SCORE",
                        help="the least score of a detection, from 0 to 1 (0.5)")
    parser.add_argument("--draw", type=_drawings, default=(), metavar="boxes,masks",
                        help="draw detections on the pictures, for --output 'out/*.png'")
    parser.add_argument("--output-range", type=_bounds, metavar="LOW,HIGH",
                        help="the range of outputs that become pictures (0,1, -1,1 or 0,255, by the first batch)")


def output_options_of(args: Namespace) -> OutputOptions:
    """The options as given. Raises as `read_labels`, InvalidArgument for options that need pictures as output."""
    if (args.draw or args.output_range is not None) and not (args.output is not None and is_of_pictures(args.output)):
        name = "--draw" if args.draw else "--output-range"
        raise InvalidArgument(f"{name} is for pictures as output", hint="--output 'out/*.png'")
    return OutputOptions(read_labels(args.labels, args.top), args.top, args.threshold, args.labels_from_folders,
                         args.draw, args.output_range)


def _drawings(text: str) -> tuple[str, ...]:
    kinds = tuple(kind.strip() for kind in text.split(","))
    if not kinds or not set(kinds) <= set(DRAWINGS):
        raise ArgumentTypeError(f"'{text}' is neither boxes nor masks nor boxes,masks")
    return kinds


def _bounds(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low = high = 0.0
    if not (isfinite(low) and isfinite(high) and low < high):
        raise ArgumentTypeError(f"'{text}' is no range such as 0,1")
    return low, high


def _share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"'{text}' is no number from 0 to 1")
    return number

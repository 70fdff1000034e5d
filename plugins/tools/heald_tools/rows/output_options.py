"""The options of `heald run` about answers: labels, detections and pictures."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import Any, NamedTuple

from heald.api.cli import positive

from .labels import read_labels
from .results import Labels


class OutputOptions(NamedTuple):
    """`labels`: The names of the classes of an output. `top`: Labels of a row.

    `threshold`: The least score of a detection; None where the user gives none.
    `from_folders`: The folders of pictures name their classes.
    """

    labels: Labels | None = None
    top: int = 5
    threshold: float | None = None
    from_folders: bool = False


def add_output_options(parser: Any) -> None:
    parser.add_argument("--labels", metavar="FILE", help="the names of classes, one a line: the best become columns")
    parser.add_argument("--top", type=positive, default=5, metavar="N", help="labels of a row (5)")
    parser.add_argument("--labels-from-folders", action="store_true",
                        help="photos/cat/1.jpg is a cat: a column more, and the accuracy at the end")
    parser.add_argument("--threshold", type=_share, metavar="SCORE",
                        help="the least score of a detection, from 0 to 1 (0.5)")


def output_options_of(args: Namespace) -> OutputOptions:
    """The options as given. Raises as `read_labels`."""
    return OutputOptions(read_labels(args.labels, args.top), args.top, args.threshold, args.labels_from_folders)


def _share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"'{text}' is no number from 0 to 1")
    return number

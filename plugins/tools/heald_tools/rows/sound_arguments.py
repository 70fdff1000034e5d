"""The options of `heald run` about sounds."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import Any

from .options import SoundOptions

HIGHEST_RATE = 1 << 20  # samples a second


def add_sounds(parser: Any) -> None:
    parser.add_argument("--sample-rate", type=_rate, metavar="HZ",
                        help="resample sounds (by default each has its file's rate); the rate of --output out/*.wav")
    parser.add_argument("--mono", action="store_true", help="mix the channels of sounds (as an input of one has it)")


def sound_options_of(args: Namespace) -> SoundOptions:
    from .sounds import Rates

    return SoundOptions(args.sample_rate, args.mono, Rates())


def _rate(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= HIGHEST_RATE:
        raise ArgumentTypeError(f"'{text}' is no rate of samples, such as 16000")
    return int(text)

"""`python -m weft_mlir.tfrt_opt`: TFRT's program of this name."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .llvm_options import LlvmParser, run
from .optimizer import add_arguments, optimize
from .translation import STDIN


def main(arguments: Sequence[str] | None = None) -> int:
    parser = LlvmParser("tfrt_opt")
    add_arguments(parser)
    parser.add_argument("source", nargs="?", default=STDIN, help="the file to read; stdin by default")
    parser.add_argument("-o", dest="output", default=STDIN, metavar="FILE", help="the file to write; stdout by default")
    return run(parser, optimize, arguments)


if __name__ == "__main__":
    sys.exit(main())

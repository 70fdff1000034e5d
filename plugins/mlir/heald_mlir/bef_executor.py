"""`python -m heald_mlir.bef_executor`: TFRT's program of this name."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .executor_driver import add_arguments, execute
from .llvm_options import LlvmParser, run
from .translation import STDIN


def main(arguments: Sequence[str] | None = None, name: str = "bef_executor") -> int:
    parser = LlvmParser(name)
    add_arguments(parser)
    parser.add_argument("source", nargs="?", default=STDIN, help="a BEF file or a text; stdin by default")
    return run(parser, lambda args: execute(args, name), arguments)


if __name__ == "__main__":
    sys.exit(main())

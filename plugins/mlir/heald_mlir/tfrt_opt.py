"""`python -m heald_mlir.tfrt_opt`: TFRT's program of this name."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .llvm_options import run_filter
from .optimizer import add_arguments, optimize


def main(arguments: Sequence[str] | None = None) -> int:
    return run_filter("tfrt_opt", add_arguments, optimize, arguments)


if __name__ == "__main__":
    sys.exit(main())

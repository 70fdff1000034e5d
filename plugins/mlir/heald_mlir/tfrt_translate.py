"""`python -m heald_mlir.tfrt_translate`: TFRT's program of this name."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .llvm_options import run_filter
from .translation import add_arguments, translate


def main(arguments: Sequence[str] | None = None) -> int:
    return run_filter("tfrt_translate", add_arguments, translate, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m heald_mlir.bef_executor_lite`: the same program as bef_executor, which lacks some kernels in TFRT."""

import sys

from .bef_executor import main

if __name__ == "__main__":
    sys.exit(main(name="bef_executor_lite"))

"""The command `heald`, which `python -m heald` is too."""

import gc
import sys

from .runtime.support.working_folder import remove_working_folder


def main() -> int:
    """Run the command in sys.argv and return its exit status. Nothing is imported from the working folder."""
    remove_working_folder()
    from .cli import main as command

    status = command()
    from .cli.printing.notices import one_line_from_here

    one_line_from_here()
    gc.freeze()  # the interpreter's end collects garbage among a program's objects: 25 ms for a small network
    return status


if __name__ == "__main__":
    sys.exit(main())

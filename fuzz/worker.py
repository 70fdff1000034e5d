"""The child process: puts mutants through their door under limits, and answers with the outcome of each.

Requests are lines of JSON, [target, seed, first, stop] or [target, file]. Each mutant gets a line [number] when it is
made, and a line [number, kind, where, text] when it is judged; each request gets a last line []. The parent kills a
child whose verdict takes too long. The time of making a mutant does not count: its seed may have to be compiled first.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .judge import Judge
from .samples import Sample, unpack_sample
from .targets import TARGETS, mutant

_ADDRESSES = 1 << 30  # bytes of address space beyond those at rest: threads map more than they touch
_FILES = 16 << 20  # bytes of a file that is written
_THREAD_STACK_BYTES = 1 << 20  # bytes of a thread's stack


def main() -> None:
    """Serve the parent until it closes the pipe."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # ops that print do not print answers
    folder = Path(sys.argv[1], "mutant")
    folder.mkdir()
    warnings.simplefilter("ignore")
    judge = Judge(folder)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    limit()
    tell(answers, [])
    for line in sys.stdin:
        request = json.loads(line)
        for number, sample in samples(*request):
            tell(answers, [number])
            tell(answers, [number, *judge(request[0], sample)])
        tell(answers, [])


def samples(target: str, seed: int | str, first: int = 0, stop: int = 0) -> Iterator[tuple[int, Sample]]:
    """The samples of a request: that of the file `seed`, or mutants [first, stop) of a seed."""
    if isinstance(seed, str):
        yield 0, unpack_sample(Path(seed).read_bytes(), is_folder=TARGETS[target].is_folder)
    else:
        yield from ((number, mutant(target, seed, number)) for number in range(first, stop))


def tell(answers: Any, content: object) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


def limit() -> None:
    """Bound the address space, counted from its present size, and the size of files."""
    threading.stack_size(_THREAD_STACK_BYTES)
    mapped = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    address_limit = mapped + _ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (address_limit, address_limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILES, _FILES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


if __name__ == "__main__":
    main()

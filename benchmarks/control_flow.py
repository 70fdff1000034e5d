"""Control flow: loops, branches and calls around little work, loops over rows and tokens, an LSTM, and a network in a
branch and in a loop.

    python benchmarks/control_flow.py [--rounds N] [--tensorflow PYTHON] [--network FILE.pb]

TensorFlow runs the same GraphDef in a process of its own (tf.compat.v1.Session.make_callable), in turn with heald: by
its default, on all cores, and with all ops on the thread that calls. PYTHON is that of an environment with
tensorflow-cpu; heald never needs it. Ratios are medians over the rounds. Results are compared before they are timed.

--network: a frozen network with one input and one output, behind an If and as the body of a While of 10 turns. Both
are heald's alone, relative to the same network without control flow, which runs 10 times for the While. FILE.npz has an
input (x0) and the output of TensorFlow (y0), as networks.py writes them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import control_flow_graphs as graphs
import heald
import numpy as np
from control_flow_graphs import Case
from heald.errors import HealdError
from tabulate import tabulate
from tensorflow_process import TensorFlow, TensorFlowError
from timing import ratio, seconds, time_pairs

TURN = 0.05  # seconds
CLOSE = 1e-4  # relative and absolute
INSTALL = "TensorFlow is left out: in an environment of its own, pip install tensorflow-cpu, then --tensorflow PYTHON"

Timed = Callable[[int], float]  # seconds of a run, over so many runs


def heald_case(case: Case) -> tuple[np.ndarray, Timed]:
    """The fetched array, and the runs to time. Raises HealdError."""
    step = heald.Session(case.graph).make_callable(case.fetch, [*case.feeds])
    values = [*case.feeds.values()]
    return step(*values), lambda repeat: seconds(lambda: step(*values), repeat)


def in_rounds(timed: list[Timed], rounds: int) -> list[tuple[float, ...]]:
    """Seconds of a run of each, for each of them in all rounds. Some runs before each turn are not timed."""
    repeats = [max(round(TURN / min(timed_case(1) for _ in range(3))), 1) for timed_case in timed]

    def turn(timed_case: Timed, repeat: int) -> float:
        timed_case(max(repeat // 4, 1))
        return timed_case(repeat)

    return list(zip(*[[*map(turn, timed, repeats)] for _ in range(rounds)], strict=True))


def row(case: Case, peer: TensorFlow | None, rounds: int) -> list[str]:
    raw = heald.graphdef.dumps(case.graph)
    thread_modes = (False, True) if peer is not None else ()
    theirs = [peer.open(raw, case.fetch, case.feeds, one_thread=one_thread) for one_thread in thread_modes
              if peer is not None]
    try:
        result, ours = heald_case(case)
    except HealdError as error:
        times = in_rounds([timed for _, timed in theirs], rounds)
        return [case.title, type(error).__name__, *(cell for time in times for cell in (duration(time), ""))]
    for expected, _ in theirs:
        np.testing.assert_allclose(result, expected, CLOSE, CLOSE, err_msg=case.title)
    our_times, *others = in_rounds([ours, *(timed for _, timed in theirs)], rounds)
    return [case.title, duration(our_times), *(cell for time in others
                                               for cell in (duration(time), f"{ratio(time, our_times):.2f}"))]


def duration(times: tuple[float, ...]) -> str:
    return text_of(median(times))


def text_of(time: float) -> str:
    return f"{time * 1e6:.1f} us" if time < 1e-3 else f"{time * 1e3:.2f} ms"


def network_rows(path: Path, rounds: int) -> list[list[str]]:
    """The network of this file behind an If and in a While, relative to the network alone."""
    stored = np.load(path.with_suffix(".npz"))
    x, y = stored["x0"], stored["y0"]
    model = heald.load(path)
    (feed,), (fetch,) = model.fed.values(), model.fetched.values()
    network = graphs.network_function("network", heald.graphdef.load(path), feed, fetch)
    branch = Case("behind an If", graphs.network_in_branch(network, x, y), "result:0", {"p": np.bool_(True), "x": x})
    loop = Case(f"in a While, {graphs.TURNS} turns", graphs.network_in_loop(network, x, y), "loop:2", {"x": x})

    def turns() -> np.ndarray:
        image = x
        for _ in range(graphs.TURNS):
            out = model(image)
            image = image + graphs.SMALL * out.mean()
        return np.asarray(out)

    rows = []
    for case, alone in ((branch, lambda: model(x)), (loop, turns)):
        step, values = heald.Session(case.graph).make_callable(case.fetch, [*case.feeds]), [*case.feeds.values()]
        np.testing.assert_allclose(step(*values), alone(), CLOSE, CLOSE * float(np.std(y)), err_msg=case.title)
        ours, plain, against = time_pairs(lambda step=step, values=values: step(*values), alone, 1, rounds)
        rows.append([f"{path.stem} {case.title}", text_of(ours), text_of(plain), f"{against:.3f}"])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="15")
    parser.add_argument("--tensorflow", default=sys.executable, metavar="PYTHON", help="the Python that runs heald")
    parser.add_argument("--network", type=Path, metavar="FILE.pb")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        try:
            peer = TensorFlow(options.tensorflow, Path(folder))
        except TensorFlowError:
            print(f"{INSTALL}\n")
            table = [row(case, None, options.rounds) for case in graphs.cases()]
        else:
            with peer:
                table = [row(case, peer, options.rounds) for case in graphs.cases()]
    headers = ["work", "heald", "TensorFlow", "TensorFlow/heald", "on one thread", "TensorFlow/heald"]
    print(tabulate(table, headers[:len(table[0])], disable_numparse=True))
    if options.network is not None:
        rows = network_rows(options.network, options.rounds)
        print(f"\n{tabulate(rows, ['network', 'heald', 'without control flow', 'ratio'], disable_numparse=True)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

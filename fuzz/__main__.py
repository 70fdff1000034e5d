"""`python -m fuzz`: run mutants, list failures, make a mutant again, shrink a failing one, print the table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import campaign, minimise, samples, state, table
from .targets import TARGETS, mutant

PAGE = Path(__file__).parents[1] / "docs" / "fuzzing.md"


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Gives 1 where a mutant failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    add = commands.add_parser("run", help="run mutants of targets")
    add.add_argument("targets", nargs="*", metavar="TARGET", default=[*TARGETS], help="default: all")
    add.add_argument("--mutants", type=int, default=10_000, metavar="N", help="of each target")
    add.add_argument("--seed", type=int, default=0, metavar="S")
    add.add_argument("--jobs", type=int, default=1, metavar="J", help="children at a time")
    add.add_argument("--resume", action="store_true", help="go on with the state that is there")
    _add_state_argument(add)
    add.set_defaults(command=_run)

    add = commands.add_parser("failures", help="list failures, most frequent first")
    _add_state_argument(add)
    add.add_argument("--minimised", type=Path, metavar="FOLDER", help="write a small file for each group there")
    add.set_defaults(command=_print_failures)

    add = commands.add_parser("show", help="write a mutant to a file: a folder's as a zip archive")
    _add_mutant_arguments(add)
    add.add_argument("-o", "--output", type=Path, metavar="FILE")
    add.set_defaults(command=_write_mutant)

    add = commands.add_parser("minimise", help="shrink a failing sample")
    add.add_argument("target", choices=TARGETS, metavar="TARGET")
    add.add_argument("file", type=Path, metavar="FILE", help="as `show` writes it")
    add.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    add.set_defaults(command=_minimise)

    add = commands.add_parser("table", help="counts per outcome, as markdown")
    add.add_argument("--write", action="store_true", help=f"into docs/{PAGE.name}")
    _add_state_argument(add)
    add.set_defaults(command=_print_table)

    commands.add_parser("list", help="the targets").set_defaults(command=_list_targets)
    options = parser.parse_args(arguments)
    unknown = set(getattr(options, "targets", ())) - {*TARGETS}
    if unknown:
        parser.error(f"no target is called {', '.join(sorted(unknown))}; targets: {', '.join(TARGETS)}")
    return options.command(options)  # type: ignore[no-any-return]


def _add_state_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", type=Path, default=state.FOLDER, metavar="FOLDER", help="where outcomes are kept")


def _add_mutant_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", choices=TARGETS, metavar="TARGET")
    parser.add_argument("seed", type=int)
    parser.add_argument("number", type=int)


def _run(options: argparse.Namespace) -> int:
    states = campaign.run(options.targets, options.seed, options.mutants, options.jobs, options.state,
                          resume=options.resume)
    print(table.markdown(states))
    return int(any(one.failures for one in states))


def _print_failures(options: argparse.Namespace) -> int:
    states = table.load_states(options.state)
    for one in states:
        for position, failure in enumerate(sorted(one.failures, key=lambda f: -f.count)):
            numbers = ", ".join(map(str, failure.numbers))
            print(f"## {one.target}, seed {one.seed}: {failure.kind}, {failure.count} times\n\n{failure.where}\n"
                  f"mutants {numbers}\n\n```\n{failure.text.rstrip()}\n```\n")
            if options.minimised is not None:
                _write_minimised(one, failure, options.minimised / one.target / f"{failure.kind}-{one.seed}-{position}")
    return int(any(one.failures for one in states))


def _write_minimised(one: state.State, failure: state.Failure, path: Path) -> None:
    """Write the first mutant of a group, minimised, where it still fails."""
    try:
        small, _ = minimise.minimise_sample(mutant(one.target, one.seed, failure.numbers[0]), one.target)
    except ValueError as error:
        print(f"{error}\n")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(samples.pack_sample(small))
        print(f"minimised: {path}\n")


def _write_mutant(options: argparse.Namespace) -> int:
    data = samples.pack_sample(mutant(options.target, options.seed, options.number))
    if options.output is None:
        sys.stdout.buffer.write(data)
    else:
        options.output.write_bytes(data)
    return 0


def _minimise(options: argparse.Namespace) -> int:
    sample = samples.unpack_sample(options.file.read_bytes(), is_folder=TARGETS[options.target].is_folder)
    small, outcome = minimise.minimise_sample(sample, options.target)
    options.output.write_bytes(samples.pack_sample(small))
    print(f"{outcome.kind}, {outcome.where}: {sum(map(len, sample.values()))} bytes before, "
          f"{sum(map(len, small.values()))} now\n{outcome.text}")
    return 0


def _print_table(options: argparse.Namespace) -> int:
    states = table.load_states(options.state)
    if options.write:
        PAGE.write_text(table.renew_table(PAGE.read_text("utf-8"), states), "utf-8")
    else:
        print(table.markdown(states))
    return 0


def _list_targets(_options: argparse.Namespace) -> int:
    for name, target in TARGETS.items():
        seeds = sum(len(pool.samples) for pool in target.pools())
        print(f"{name:<18} {seeds:>6,} seeds  {target.door.__doc__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

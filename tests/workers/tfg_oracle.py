"""Compares the TF Graph IR of heald with TensorFlow's own, or records TensorFlow's results for the tests.

    PYTHONPATH=tests python -m workers.tfg_oracle compare --oracle PROGRAM [--graphs 2000] [--first 0] [FILE.pb ...]
    PYTHONPATH=tests python -m workers.tfg_oracle read --oracle PROGRAM [--texts 5000] [--seed 0] [--differences F.md]
    PYTHONPATH=tests python -m workers.tfg_oracle record --oracle PROGRAM
    PYTHONPATH=tests python -m workers.tfg_oracle record-reading --oracle PROGRAM
    PYTHONPATH=tests python -m workers.tfg_oracle record-regions --oracle PROGRAM

PROGRAM is built on the libraries of tensorflow-cpu. `PROGRAM many` reads lines `MODE FILE OUT [PASSES]`: `import` turns
a GraphDef into text, `parse` a text into text, `export` a text into a GraphDef in text form. It writes a status per
line; OUT has the result, OUT.err the messages. Nothing of it is part of heald.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

import heald
from builders.random_graphdefs import random_bytes
from builders.random_regions import random_region_text
from builders.random_tfg_texts import random_text
from google.protobuf import text_format
from heald.graphs.protobuf.descriptor_pool import message_class
from tqdm import tqdm
from workers.tfg_reading import Comparison, Oracle
from workers.tfg_record_reading import record_reading

DATA = Path(__file__).parents[1] / "data"
RECORDED = DATA / "tfg/random.tar.xz"
RECORDED_PASSES = DATA / "tfg/passes.tar.xz"
RECORDED_GRAPHS = 200
PASSES = ("graph:toposort,func:toposort", "graph:toposort,shape-inference", "consolidate-attrs", "functional-to-region",
          "strip-default-attrs", "func:cse", "func:name-compress")
RECORDED_REGIONS = DATA / "tfg/regions.tar.xz"
REGION_TEXTS = 60
# A pass of TFG is repeated where one run leaves control flow that the removed nodes alone used.
REGION_PASSES = ("func:cf-sink", "eliminate-passthrough", "func:cse,func:cse,func:cse", "drop-output-shapes")
BATCH = 100
MOST_LINES = 12  # of a difference that are printed


class Job(NamedTuple):
    """One line for the oracle, and the file with the result."""

    mode: str
    source: Path
    out: Path
    passes: str = ""

    def __str__(self) -> str:
        return f"{self.mode} {self.source} {self.out} {self.passes}".rstrip()


def run(program: str, jobs: Sequence[Job]) -> list[str | None]:
    """The result of each job as text, None where TensorFlow refused it or ended."""
    lines = "".join(f"{job}\n" for job in jobs)
    process = subprocess.run([program, "many"], input=lines, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True,
                             check=True).stdout.split()
    return [_text(job) if status == "0" else None for job, status in zip(jobs, process, strict=True)]


def _text(job: Job) -> str:
    """The result without the empty line that the oracle adds to texts."""
    text = job.out.read_text("utf-8")
    return text.removesuffix("\n") if text.endswith("}\n\n") else text


def message(text: str) -> Any:
    return text_format.Parse(text, message_class("GraphDef")())


def compare(program: str, graphs: Iterable[tuple[str, bytes]]) -> Counter[str]:
    """Print each difference. Counts equal graphs, and each kind of difference."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for batch in _batches(graphs):
            _compare(program, folder, batch, counts)
    return counts


def _batches(graphs: Iterable[tuple[str, bytes]]) -> Iterable[list[tuple[str, bytes]]]:
    batch = []
    for graph in graphs:
        batch.append(graph)
        if len(batch) == BATCH:
            yield batch
            batch = []
    yield batch


def _compare(program: str, folder: Path, batch: Sequence[tuple[str, bytes]], counts: Counter[str]) -> None:
    for index, (_, raw) in enumerate(batch):
        (folder / f"{index}.pb").write_bytes(raw)
    numbers = range(len(batch))
    theirs = run(program, [Job("import", folder / f"{i}.pb", folder / f"{i}.tfg") for i in numbers])
    accepted = [i for i in numbers if theirs[i] is not None]
    counts["refused by TensorFlow"] += len(batch) - len(accepted)
    ours: dict[int, str] = {}
    for index in accepted:
        name, raw = batch[index]
        ours[index] = _ours(name, raw, counts)
        (folder / f"{index}.ours").write_text(ours[index], "utf-8")
        _tell(name, "text", theirs[index] or "", ours[index], counts)
    again = run(program, [Job("parse", folder / f"{i}.ours", folder / f"{i}.again") for i in accepted])
    exported = [run(program, [Job("export", folder / f"{i}.{kind}", folder / f"{i}.{kind}.pbtxt") for i in accepted])
                for kind in ("ours", "tfg")]
    for index, parsed, our_text, canonical in zip(accepted, again, *exported, strict=True):
        name = batch[index][0]
        _tell(name, "text after TensorFlow's parser", theirs[index] or "", parsed or "refused", counts)
        if canonical is None:
            counts["TensorFlow does not export its own text"] += 1
            continue
        _tell(name, "TensorFlow's export of our text", canonical, our_text or "refused", counts)
        _tell(name, "GraphDef", str(message(canonical)), _export(ours[index]), counts)


def _ours(name: str, raw: bytes, counts: Counter[str]) -> str:
    """Our canonical text. Counts whether the full text gives the same bytes back."""
    try:
        graph = heald.graphdef.loads(raw)
        back = heald.graphdef.dumps(heald.tfg.loads(heald.tfg.dumps(graph)))
        _count(name, "GraphDef after a round trip", back == raw, counts)
        return str(heald.tfg.dumps(graph, canonical=True))
    except Exception as error:  # noqa: BLE001 - any exception is a finding
        _count(name, f"{type(error).__name__}: {error}", False, counts)
        return ""


def _export(text: str) -> str:
    try:
        return str(message_class("GraphDef").FromString(heald.graphdef.dumps(heald.tfg.loads(text))))
    except heald.errors.HealdError as error:
        return f"{type(error).__name__}: {error}"


def _tell(name: str, what: str, theirs: str, ours: str, counts: Counter[str]) -> None:
    _count(name, what, theirs == ours, counts)
    if theirs != ours:
        lines = [*unified_diff(theirs.splitlines(), ours.splitlines(), "TensorFlow", "heald", n=0, lineterm="")]
        for line in lines[2:MOST_LINES]:
            print(f"    {line[:600]}")


def _count(name: str, what: str, equal: bool, counts: Counter[str]) -> None:
    counts[f"{what}: {'equal' if equal else 'DIFFERENT'}"] += 1
    if not equal:
        print(f"{name}: {what[:600]}")


def record(program: str) -> None:
    """Write TensorFlow's text and export of random graphs, and the results of its passes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        samples = {f"{seed}": random_bytes(seed) for seed in range(RECORDED_GRAPHS)}
        files = _texts(program, folder, samples)
        pack(RECORDED, files)
        programs = {path.parent.name: path.read_bytes() for path in sorted(DATA.glob("programs/*/graph.pb"))}
        pack(RECORDED_PASSES, _passes(program, folder, programs | dict(list(samples.items())[:60])))
    record_regions(program)


def _texts(program: str, folder: Path, samples: dict[str, bytes]) -> dict[str, bytes]:
    for name, raw in samples.items():
        (folder / f"{name}.pb").write_bytes(raw)
    texts = run(program, [Job("import", folder / f"{name}.pb", folder / f"{name}.tfg") for name in samples])
    exports = run(program, [Job("export", folder / f"{name}.tfg", folder / f"{name}.pbtxt") for name in samples])
    files = {}
    for (name, raw), text, exported in zip(samples.items(), texts, exports, strict=True):
        assert text is not None, name
        files |= {f"{name}.pb": raw, f"{name}.tfg": text.encode()}
        if exported is not None:  # TensorFlow does not export float8
            files[f"{name}.exported.pb"] = message(exported).SerializeToString(deterministic=True)
    return files


def _passes(program: str, folder: Path, samples: dict[str, bytes]) -> dict[str, bytes]:
    files = {}
    for name, raw in samples.items():
        (folder / f"{name}.pb").write_bytes(raw)
        jobs = [Job("import", folder / f"{name}.pb", folder / f"{name}.{i}.tfg", passes)
                for i, passes in enumerate(("", *PASSES))]
        before, *after = run(program, jobs)
        if before is None:
            continue
        files[f"{name}.pb"] = raw
        for passes, text in zip(PASSES, after, strict=True):
            key = passes.rpartition(",")[2].rpartition(":")[2]
            if text is not None and text != before:
                files[f"{name}.{key}.tfg"] = text.encode()
    return files


def record_regions(program: str) -> None:
    """Write random texts with regions, and TensorFlow's text after each pass that is about regions."""
    files = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(REGION_TEXTS):
            source = folder / f"{seed}.tfg"
            source.write_text(random_region_text(seed, is_run=False), "utf-8")
            jobs = [Job("parse", source, folder / f"{seed}.{i}.out", passes)
                    for i, passes in enumerate(("", *REGION_PASSES))]
            before, *after = run(program, jobs)
            assert before is not None, seed
            files[f"{seed}.tfg"] = before.encode()
            for passes, text in zip(REGION_PASSES, after, strict=True):
                assert text is not None, (seed, passes)
                if text != before:
                    files[f"{seed}.{passes.rpartition(':')[2]}.tfg"] = text.encode()
    pack(RECORDED_REGIONS, files)


def pack(file: Path, files: dict[str, bytes]) -> None:
    file.parent.mkdir(exist_ok=True)
    with tarfile.open(file, "w:xz", preset=9) as archive:
        for name, raw in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    print(f"{file}: {len(files)} files, {sum(map(len, files.values())):,} bytes, packed {file.stat().st_size:,}")


def read(program: str, seeds: range, differences: Path | None) -> int:
    """Compare the readers on random texts. Prints counts; returns 1 for differences that are not allowed."""
    with tempfile.TemporaryDirectory() as folder, Oracle(program, Path(folder)) as oracle:
        comparison = Comparison(oracle)
        for seed in tqdm(seeds, file=sys.stderr):
            comparison.add(random_text(seed))
        print("\n".join(comparison.table()))
        if differences is not None:
            differences.write_text("\n".join(comparison.report(reduce=True)) + "\n", "utf-8", "backslashreplace")
        return int(bool(comparison.groups))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("compare", "read", "record", "record-reading", "record-regions"))
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.pb", help="compared instead of random graphs")
    parser.add_argument("--oracle", required=True, metavar="PROGRAM")
    parser.add_argument("--graphs", type=int, default=2000, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--texts", type=int, default=5000, metavar="N", help="random texts to read")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first text")
    parser.add_argument("--differences", type=Path, metavar="FILE.md", help="one line a group, with its smallest text")
    args = parser.parse_intermixed_args()  # files may follow options
    if args.work in ("record", "record-regions"):
        (record if args.work == "record" else record_regions)(args.oracle)
        return 0
    if args.work == "record-reading":
        with tempfile.TemporaryDirectory() as folder, Oracle(args.oracle, Path(folder)) as oracle:
            record_reading(oracle)
        return 0
    if args.work == "read":
        return read(args.oracle, range(args.seed, args.seed + args.texts), args.differences)
    seeds = range(args.first, args.first + args.graphs)
    graphs = [(str(file), file.read_bytes()) for file in args.files] or ((f"seed {s}", random_bytes(s)) for s in seeds)
    counts = compare(args.oracle, tqdm(graphs, total=len(args.files) or args.graphs, file=sys.stderr))
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")
    return int(any("DIFFERENT" in what for what in counts))


if __name__ == "__main__":
    sys.exit(main())

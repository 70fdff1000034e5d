"""The results of inference.py in words and tables: a page of all, and the README's section of the usual case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

TITLES = {
    "mobilenetv2": "MobileNetV2", "resnet50": "ResNet50", "efficientnetb0": "EfficientNetB0",
    "densenet121": "DenseNet121", "inceptionv3": "InceptionV3", "encoder": "BERT-like encoder",
    "lstm": "LSTM", "gru": "GRU", "digits": "digits (8x8 pixels)",
}
RUNTIMES = {"heald": "heald", "tensorflow": "TensorFlow", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
BEGIN, END = "<!-- inference: made by benchmarks/inference.py -->", "<!-- end of inference -->"
MACHINE = {"heald-core": "heald", "tensorflow-cpu": "TensorFlow", "tensorflow": "TensorFlow",
           "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}  # the packages whose versions are shown

Results = Mapping[str, Any]


def headline(results: Results) -> tuple[int, int]:
    """Batch and threads of the results shown first: the least batch, and the most threads that ran it."""
    batch, threads = min((row["batch"], -row["threads"]) for row in results["results"])
    return batch, -threads


def rows_of_batch(results: Results, batch: int, threads: int) -> list[Any]:
    return [row for row in results["results"] if (row["batch"], row["threads"]) == (batch, threads)]


def runtimes(rows: Sequence[Any]) -> list[str]:
    """The runtimes that have a result in these rows, in the order of RUNTIMES."""
    return [name for name in RUNTIMES if any(name in row["runtimes"] for row in rows)]


def machine(results: Results) -> str:
    """`2026-01-31, Some CPU (AVX-512), 2 cores`."""
    instructions = f" ({', '.join(results['instructions'])})" if results["instructions"] else ""
    return f"{results['date']}, {results['cpu']}{instructions}, {_count(results['cores'], 'core')}"


def versions(results: Results) -> str:
    named_versions = {MACHINE[name]: version for name, version in results["versions"].items() if name in MACHINE}
    return ", ".join([f"Python {results['python']}",
                      *(f"{name} {version}" for name, version in named_versions.items())])


def short(rows: Sequence[Any]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: median milliseconds of each runtime, and heald's time as a fraction of the others'."""
    there = runtimes(rows)
    head = ["median ms", *(RUNTIMES[name] for name in there), *(f"heald / {RUNTIMES[name]}" for name in there[1:])]
    return head, [
        [TITLES[row["network"]], *(_ms(row, name) for name in there), *(_ratio(row, name) for name in there[1:])]
        for row in rows]


def long(rows: Sequence[Any]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: a row for each network and runtime, with the spread of its times."""
    head = ["network", "runtime", "min ms", "median ms", "p90 ms", "p99 ms", "heald / theirs", "in each repeat",
            "difference"]
    cells = []
    for row in rows:
        for name in runtimes([row]):
            times = row["runtimes"][name]
            off = row["difference"] if name == "heald" else times["difference"]
            cells.append([TITLES[row["network"]] if name == "heald" else "", RUNTIMES[name],
                          *(f"{times[key]:.3f}" for key in ("min", "median", "p90", "p99")), _ratio(row, name),
                          " ".join(f"{ratio:.2f}" for ratio in times.get("ratios", ())), f"{off:.0e}"])
    return head, cells


def section(results: Results) -> str:
    """The section of the README: plot and short table."""
    batch, threads = headline(results)
    rows = rows_of_batch(results, batch, threads)
    return f"""\
<picture>
  <source media="(prefers-color-scheme: dark)" srcset="docs/inference-dark.svg">
  <img alt="{_alt(rows, batch, threads)}" src="docs/inference.svg">
</picture>

{_markdown(*short(rows))}

Batch {batch}, {_count(threads, 'thread')}, float32: {machine(results)}.
Measured {_often(rows)}; ratios are medians over turns of all runtimes, below 1 heald is faster. \
[All numbers](docs/inference.md)."""


def page(results: Results) -> str:
    """The page of all results, with a table for each batch and number of threads."""
    parts = ["# How fast networks run", f"Measured on {machine(results)}; {results['system']}, {versions(results)}.",
             WORDS]
    for batch, threads in dict.fromkeys((row["batch"], row["threads"]) for row in results["results"]):
        rows = rows_of_batch(results, batch, threads)
        parts += [f"## Batch {batch}, {_count(threads, 'thread')}", f"Measured {_often(rows)}.", _markdown(*long(rows))]
    return "\n\n".join(parts) + "\n"


WORDS = """\
`benchmarks/inference.py` measures frozen float32 graphs with an unknown batch, and writes this page. The runtimes take
turns in one process. Before each turn the threads of the other runtimes go to sleep, and some runs are not timed. A
repeated measurement has a process of its own each time: times are medians over these processes, and min is their
minimum. `heald / theirs` compares the medians of one turn, and is the median over the turns: below 1 heald is faster.

`difference` is the largest difference of the logits, in their standard deviations. heald is compared with recorded
results of TensorFlow, and the other runtimes with heald. Rounding in float32 leaves about 1e-5 after so many layers.
The networks are untrained. Their normalisations have the statistics of real activations, so the logits depend on the
input.

On a shared machine times differ by half and more from one hour to the next, for all runtimes alike. Ratios therefore
say more than milliseconds.

To repeat the measurement, give the other runtimes an environment of their own; heald never needs them. The command
makes the networks, measures for about an hour, and renews this page and the table of the README.
`--repeats 1 --seconds 1` gives a first impression; `--networks`, `--batches` and `--threads` choose a part.

```sh
python3 -m venv peers
peers/bin/pip install -e core -e device_cpu -e plugins/tf_ops -e plugins/saved_model -e plugins/tools \\
    -e plugins/onednn -e plugins/simplify -e plugins/report \\
    tensorflow-cpu tf2onnx onnxruntime openvino
peers/bin/python benchmarks/inference.py
```

`heald bench model.pb --against tensorflow,onnxruntime,openvino` compares the runtimes on another model."""


def text(results: Results) -> str:
    """The short tables, for a terminal."""
    parts = [machine(results)]
    for batch, threads in dict.fromkeys((row["batch"], row["threads"]) for row in results["results"]):
        head, cells = short(rows_of_batch(results, batch, threads))
        head[0] = f"batch {batch}, {_count(threads, 'thread')}: median ms"
        parts.append(tabulate(cells, head, disable_numparse=True, colalign=_align(head)))
    return "\n\n".join(parts)


def renew_section(readme: str, results: Results) -> str:
    """The README with a new section between the two marks. Raises ValueError if a mark is missing."""
    before, begin, after_begin = readme.partition(BEGIN)
    _, end, after = after_begin.partition(END)
    if not (begin and end):
        raise ValueError(f"the README lacks {BEGIN} or {END}")
    return f"{before}{begin}\n{section(results)}\n{end}{after}"


def _alt(rows: Sequence[Any], batch: int, threads: int) -> str:
    return (f"Time of a run of {len(rows)} networks with {', '.join(RUNTIMES[name] for name in runtimes(rows)[1:])}, "
            f"relative to heald's: batch {batch}, {_count(threads, 'thread')}")


def _markdown(head: list[str], cells: list[list[str]]) -> str:
    return tabulate(cells, head, tablefmt="pipe", disable_numparse=True, colalign=_align(head))


def _align(head: list[str]) -> list[str]:
    return ["left" if name in ("network", "runtime") or not i else "right" for i, name in enumerate(head)]


def _ms(row: Any, name: str) -> str:
    times = row["runtimes"].get(name)
    return "" if times is None else f"{times['median']:{'.0f' if times['median'] >= 100 else '.3g'}}"


def _ratio(row: Any, name: str) -> str:
    times = row["runtimes"].get(name, {})
    return f"{times['ratio']:.2f}" if "ratio" in times else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _often(rows: Sequence[Any]) -> str:
    """`3 times, 5 s for each runtime`: the least of these."""
    number, seconds = (min(row[key] for row in rows) for key in ("repeats", "seconds"))
    times = {1: "once", 2: "twice"}.get(number, f"{number} times")
    return f"{times}, {seconds:g} s for each runtime"

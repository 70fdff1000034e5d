"""benchmarks/inference.py: it measures and tells, without a word on how fast anything is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "inference.py"


def entry(network, batch, threads, **ratios):
    """A result as inference.py writes it: heald takes 10 ms, the others as long as these ratios say."""
    times = {"min": 9.0, "median": 10.0, "p90": 11.0, "p99": 12.0}
    others = {name: {key: value / ratio for key, value in times.items()} |
              {"ratio": ratio, "ratios": [ratio * 0.9, ratio, ratio * 1.2], "difference": 2e-5}
              for name, ratio in ratios.items()}
    return {"network": network, "batch": batch, "threads": threads, "difference": 1e-5, "others_difference": 3e-5,
            "repeats": 3, "seconds": 5.0, "runtimes": {"heald": times, **others}}


@pytest.fixture
def results():
    return {"date": "2026-01-31", "cpu": "A CPU", "instructions": ["AVX-512"], "cores": 4, "system": "Linux",
            "python": "3.11.7", "versions": {"heald-core": "0.1.0", "numpy": "2.0.0"},
            "results": [entry("resnet50", batch, threads, tensorflow=0.5, openvino=1.25)
                        for threads in (1, 2) for batch in (1, 16)] + [entry("digits", 1, 2, tensorflow=0.1)]}


def run_measurement(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_the_script_measures_the_digits_and_reports_them_three_times(tmp_path):
    done = run_measurement("--networks", "digits", "--batches", "1", "3", "--threads", "1", "--repeats", "1",
                           "--seconds", "0", "--folder", tmp_path / "networks", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "inference.json").read_text())
    assert [(row["network"], row["batch"], row["threads"]) for row in results["results"]] == [
        ("digits", 1, 1), ("digits", 3, 1)]
    for row in results["results"]:
        assert row["difference"] < 1e-4
        times = row["runtimes"]["heald"]
        assert 0 < times["min"] <= times["median"] <= times["p90"] <= times["p99"]
    assert results["cpu"]
    assert "heald-core" in results["versions"]
    assert "batch 3, 1 thread: median ms" in done.stdout
    assert "## Batch 3, 1 thread\n" in (tmp_path / "inference.md").read_text()


def test_recorded_results_can_be_shown_anew(tmp_path, results):
    (tmp_path / "old.json").write_text(json.dumps(results))
    done = run_measurement("--results", tmp_path / "old.json", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "| ResNet50" in (tmp_path / "inference.md").read_text()
    assert not (tmp_path / "inference.json").exists()


def test_the_readme_has_what_was_measured_with_the_least_batch_and_the_most_threads(module, results):
    table = module("inference_table")
    old = f"# heald\n{table.BEGIN}\nold\n{table.END}\nmore\n"
    new = table.renew_section(old, results)
    assert new.startswith(f"# heald\n{table.BEGIN}\n<picture>")
    assert new.endswith(f"{table.END}\nmore\n")
    assert "old" not in new
    assert "Batch 1, 2 threads, float32: 2026-01-31, A CPU (AVX-512), 4 cores." in new
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in new.splitlines() if line[:1] == "|"]
    assert cells[0] == ["median ms", "heald", "TensorFlow", "OpenVINO", "heald / TensorFlow", "heald / OpenVINO"]
    assert cells[2:] == [["ResNet50", "10", "20", "8", "0.50", "1.25"],
                         ["digits (8x8 pixels)", "10", "100", "", "0.10", ""]]
    assert table.renew_section(new, results) == new


def test_the_headline_shows_measured_results(module, results):
    """Batch 1 with 2 threads is missing."""
    results["results"] = [row for row in results["results"] if (row["batch"], row["threads"]) != (1, 2)]
    assert module("inference_table").headline(results) == (1, 1)


@pytest.mark.parametrize(("difference", "is_wrong"), [(1e-5, False), (0.5, True), (float("inf"), True),
                                                      (float("nan"), True)])
def test_networks_that_are_off_are_told(module, results, difference, is_wrong):
    results["results"][1]["difference"] = difference
    assert [row["batch"] for row in module("inference").differing(results["results"])] == [16] * is_wrong


def test_each_table_tells_how_often_and_how_long_was_measured(module, results):
    for row in results["results"]:
        if row["batch"] == 16:
            row |= {"repeats": 1, "seconds": 1.5}
    page = module("inference_table").page(results)
    assert "## Batch 1, 2 threads\n\nMeasured 3 times, 5 s for each runtime.\n" in page
    assert "## Batch 16, 2 threads\n\nMeasured once, 1.5 s for each runtime.\n" in page
    assert "Measured 3 times, 5 s for each runtime; ratios" in module("inference_table").section(results)


def test_a_readme_without_the_marks_is_left_alone(module, results):
    with pytest.raises(ValueError, match="lacks"):
        module("inference_table").renew_section("# heald\n", results)


def test_this_readme_has_the_marks(module, results):
    assert "ResNet50" in module("inference_table").renew_section((ROOT / "README.md").read_text(), results)


def test_repeats_become_their_medians_and_the_least_time(module):
    repeats = [{"runtimes": [repeat(median, ratio)]} for median, ratio in ((10, 0.9), (7, 0.8), (8, 2.0))]
    (summary,) = module("inference").summary(repeats).values()
    assert (summary["min"], summary["median"], summary["ratio"], summary["ratios"]) == (6, 8, 0.9, [0.8, 0.9, 2.0])


def repeat(median, ratio):
    return {"runtime": "openvino", "min": median - 1, "median": median, "p90": median + 1, "p99": median + 2,
            "ratio": ratio, "difference": 1e-5}


def test_the_plot_is_drawn_for_light_and_dark_pages(module, results, tmp_path):
    module("inference_plot").draw(results, tmp_path)
    assert {path.name for path in tmp_path.glob("*.svg")} == {"inference.svg", "inference-dark.svg"}

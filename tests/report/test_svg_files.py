"""Pictures as files of their own: the palettes, and the plot of multiples."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import heald
import pytest
from heald.cli import main
from heald_report.palette import DARK, LIGHT
from heald_report.ratio_plot import LONGEST_MULTIPLE, Multiple, RatioRow, ratio_plot_svg
from heald_report.svg import model_svg

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "frozen.pb"
SVG = "{http://www.w3.org/2000/svg}"


def plot(rows, palette=LIGHT, **others):
    svg = ratio_plot_svg(rows, "ours", others or {"b": "B"}, "title & more", "<note>", palette)
    return ElementTree.fromstring(svg)  # noqa: S314 - our own


def bars(root, colour):
    return [float(bar.get("width")) for bar in root.iter(f"{SVG}rect") if bar.get("fill") == colour][1:]  # the legend's


def texts(root):
    return [text.text for text in root.iter(f"{SVG}text")]


def test_palettes_have_the_colours_of_the_page():
    style = files("heald_report").joinpath("files", "style.css").read_text()
    pairs = dict(re.findall(r"--(\w+): (light-dark\(#\w+, #\w+\))", style))
    for name in ("text", "faint", "card", "line", "edge", "head", "accent", "copy"):
        assert pairs[name] == f"light-dark({getattr(LIGHT, name)}, {getattr(DARK, name)})"
    assert len(LIGHT.fills) == len(DARK.fills)
    assert len({*LIGHT.series}) == len({*DARK.series}) == 4


def test_lengths_of_bars_are_proportions():
    root = plot([RatioRow("a", "3 ms", {"b": Multiple(2.5, 2.4, 2.6)}), RatioRow("c", "4 ms",
                                                                              {"b": Multiple(0.5, 0.5, 0.5)})])
    measured, others = bars(root, LIGHT.text), bars(root, LIGHT.series[0])
    unit = measured[0]
    assert [round(length / unit, 2) for length in others] == [2.5, 0.5]
    assert {"3 ms", "2.50x", "0.50x", "a", "c", "ours", "B", "title & more", "<note>"} <= {*texts(root)}


@pytest.mark.parametrize("value", [LONGEST_MULTIPLE + 0.01, 40.0, 1e6])
def test_a_bar_beyond_the_axis_is_cut_and_states_its_multiple(value):
    root = plot([RatioRow("a", "1 ms", {"b": Multiple(value, value, value)})])
    assert len(bars(root, LIGHT.series[0])) == 2
    assert (f"{value:.2f}x" if value < 9.95 else f"{value:.0f}x") in texts(root)
    width = float(root.get("width"))
    assert all(float(bar.get("x", 0)) + float(bar.get("width")) < width for bar in root.iter(f"{SVG}rect"))


def test_a_row_may_lack_a_thing_and_none_overlap():
    rows = [RatioRow("a", "1 ms", {"b": Multiple(1, 1, 1)}), RatioRow("c", "1 ms", {"b": Multiple(1, 1, 1),
                                                                                "d": Multiple(2, 2, 2)})]
    root = plot(rows, DARK, b="B", d="D")
    tops = sorted(float(bar.get("y")) for bar in root.iter(f"{SVG}rect") if float(bar.get("height")) > 10)[3:]
    assert len(tops) == 5
    assert all(below - above > 11 for above, below in pairwise(tops))
    assert LIGHT.text not in ElementTree.tostring(root, "unicode")


def test_a_picture_of_a_graph_is_light_or_dark(tmp_path, capsys):
    model = heald.load(DIGITS)
    assert f'fill="{DARK.card}"' in model_svg(model, DARK)
    assert LIGHT.text not in model_svg(model, DARK)
    assert main(["report", str(DIGITS), "-o", str(tmp_path / "g.svg"), "--dark"]) == 0
    assert (tmp_path / "g.svg").read_text() == model_svg(model, DARK)
    assert main(["report", str(DIGITS), "-o", str(tmp_path / "g.html"), "--dark"]) == 1
    assert "--dark is of a picture" in capsys.readouterr().err

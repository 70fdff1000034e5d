"""The page: all parts in one HTML file.

The content security policy permits the scripts and styles with the hashes that the page itself states, and nothing
else: no connection, no frame, no other file. The data is JSON in a script element that does not run; `<`, `>` and `&`
are written as escapes there, so that no string of a model can end the element.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from .comparison import ModelRun, comparison_rows
from .node_table import NodeTable, TextPool, bodies_of, shown_text
from .pass_steps import PassStep, step_rows
from .pictures import Gallery, Picture, memories_of
from .placement_summary import placement_summary
from .program_record import program_record
from .roofline import Roofline
from .run_record import run_record

if TYPE_CHECKING:
    from heald import HostProgram, Model

SCRIPTS = ("data.js", "colours.js", "graph.js", "tables.js", "copies.js", "roofline.js", "timeline.js", "passes.js",
           "comparison.js", "main.js")
LIVE_SCRIPTS = (*SCRIPTS[:-1], "live.js", SCRIPTS[-1])  # of heald view
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026",
            0x2028: "\\u2028", 0x2029: "\\u2029"}


def page_bytes(model: Model, title: str, trace: Any, passes: Sequence[PassStep] = (),
               roofline: Roofline | None = None, comparison: tuple[ModelRun, ModelRun] | None = None,
               live: Mapping[str, Any] | None = None, feeds: Sequence[str] = ()) -> bytes:
    """Return the page of a model.

    `trace`: of a run, or None without a run. `passes`: the steps of its passes. `comparison`: the model and another
    one. `live`: for a page that asks its server, the inputs and devices of its forms. `feeds`: the names of the run's
    fed tensors, in order.
    """
    data = page_data(model, trace, passes, roofline, comparison, feeds) | ({} if live is None else {"live": live})
    return _rendered("page.html", SCRIPTS if live is None else LIVE_SCRIPTS, data, title, connects=live is not None,
                     signature=_signature(model), has_run=data["run"] is not None,
                     has_copies=bool(data["run"] and data["run"]["copies"]["rows"]),
                     has_roofline=bool(data["run"] and data["run"]["roofline"]),
                     has_passes=bool(data["passes"]), has_comparison=comparison is not None)


def program_page_bytes(program: HostProgram, title: str) -> bytes:
    """Return the page of a host program."""
    return _rendered("program.html", ("program.js",), program_record(program), title)


def _rendered(template: str, script_names: Sequence[str], data: Any, title: str, *, connects: bool = False,
              **fields: Any) -> bytes:
    from jinja2 import Environment, select_autoescape

    style, scripts = _file("style.css"), [_file(name) for name in script_names]
    policy = (f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; "
              "img-src data: blob:; base-uri 'none'; form-action 'none'"
              + ("; connect-src 'self'" if connects else ""))
    environment = Environment(autoescape=select_autoescape(default=True, default_for_string=True))
    html = environment.from_string(_file(template)).render(
        title=shown_text(title), style=_markup(style), scripts=map(_markup, scripts), policy=policy,
        data=_markup(json_text(data)), **fields)
    return html.encode("utf-8", "replace")


def page_data(model: Model, trace: Any, passes: Sequence[PassStep] = (),
              roofline: Roofline | None = None, comparison: tuple[ModelRun, ModelRun] | None = None,
              feeds: Sequence[str] = ()) -> dict[str, Any]:
    """Return the data that the scripts of the page read."""
    graph = model.graph
    table, pool = NodeTable(bodies_of(graph)), TextPool()
    placement = model.placement()
    columns = table.columns(pool, placement)
    gallery = Gallery(table, memories_of(columns["device"], pool.texts))
    run = None if trace is None else run_record(trace, table, pool, roofline, feeds)
    return {"nodes": columns, "placement": placement_summary(placement, graph.nodes),
            "pictures": [_picture_row(picture) for picture in gallery.pictures],
            "places": [gallery.place_of_node.get(number, (-1, -1)) for number in range(len(table.numbers))],
            "calls": gallery.calls_of_node, "root": gallery.root, "first": gallery.first_picture(),
            "run": run, "passes": step_rows(passes, _plugins_of_passes() if passes else {}, table),
            "comparison": None if comparison is None else comparison_rows(*comparison, table), "texts": pool.texts}


def _plugins_of_passes() -> dict[str, str]:
    from heald import default_host

    return {name: entry.plugin for name, entry in default_host().registries.passes.items()}


def json_text(data: Any) -> str:
    """Return JSON that is safe inside a script element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).translate(_ESCAPES)


def _picture_row(picture: Picture) -> list[Any]:
    """Return scope, function, parent, width, height, boxes, edges; numbers are rounded to units."""
    boxes = [[box.kind, box.label, box.ref, round(x), round(y), round(box.size[0]), round(box.size[1]), box.folded,
              [[inner.picture, round(inner.left), round(inner.top)] for inner in box.inner]]
             for box, (x, y) in zip(picture.boxes, picture.corners, strict=True)]
    edges = [[edge.start, edge.end, edge.tensors, edge.flags, [round(part) for point in edge.bends for part in point],
              *([edge.copies] if edge.copies else [])]
             for edge in picture.edges]
    return [shown_text(picture.scope), shown_text(picture.function), picture.parent, *map(round, picture.size), boxes,
            edges]


def _signature(model: Model) -> list[tuple[str, str, str]]:
    return [(kind, shown_text(name), str(meta)) for kind, tensors in (("input", model.inputs),
                                                                      ("output", model.outputs))
            for name, meta in tensors.items()]


def _markup(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - the page's own files, and JSON by `json_text`


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _file(name: str) -> str:
    return files(__package__).joinpath("files", name).read_text("utf-8")

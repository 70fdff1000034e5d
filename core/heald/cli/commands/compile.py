"""heald compile: a model, compiled ahead of time into a file that is mapped and run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..printing.progress import ticking
from ..printing.terminal import say
from .arguments import add_device, add_listing, add_model
from .inputs import add_input_shapes

Shape = tuple[int, ...]
EPILOG = """\
Inputs with unknown dimensions need a shape: --input image:1,224,224,3, also
image=1x224x224x3. The same input with several shapes makes a function for each:
--input x:1,784 --input x:32,784. Other shapes run too, unless --strip leaves them
out. The file keeps weights as the kernels of this machine want
them; on another machine they are packed anew, which --strip makes impossible."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_model(parser)
    parser.add_argument("-o", "--output", metavar="FILE.bef", help="the file to write (the model's name, here)")
    add_input_shapes(parser)
    parser.add_argument("--fetch", action="append", metavar="NAME",
                        help="a tensor to compute instead of the model's outputs (repeatable)")
    add_device(parser)
    parser.add_argument("--strip", action="store_true",
                        help="leave out functions for other shapes, and weights that are packed")
    add_listing(parser)


def run(args: Namespace) -> int:
    from pathlib import Path

    from ...graphs.session.ahead_of_time import compile_model
    from ...runtime.program.bef import file as bef
    from ..printing.table import byte_text, plural, show_json
    from .compiled import compiled_report, tell_functions

    output = args.output or f"{Path(args.model).resolve().stem}.bef"
    inputs = _shapes(args)
    with ticking(f"compiling {args.model}"):
        model = compile_model(args.model, inputs=inputs, outputs=args.fetch, device=args.device,
                              signature=args.signature, tags=args.tags, format=args.format, mmap=args.mmap,
                              strip=args.strip)
        bef.dump(model, output)
    report = {"file": output, "bytes": Path(output).stat().st_size, **compiled_report(model),
              "left_out": dict(model.left_out)}
    if args.json:
        show_json(report)
        return 0
    packed = report["packed"]
    say(f"wrote {output}: {byte_text(report['bytes'])}, {plural(packed['count'], 'packed array')} of "
        f"{byte_text(packed['bytes'])}")
    tell_functions(report)
    for name, reason in model.left_out.items():
        say(f"left out: signature {name} ({reason})")
    say(f"\nit needs {', '.join(row['distribution'] or row['plugin'] for row in report['needs'])}")
    return 0


def _shapes(args: Namespace) -> dict[str, list[Shape]]:
    """The shapes of --input by name. The model is loaded for its inputs only if a text needs them."""
    from typing import Any

    import heald

    from ...runtime.contract.session import in_this_process
    from .inputs import need_inputs, shapes_by_name

    inputs: Any = {}
    if need_inputs(args.input):
        with in_this_process():
            inputs = heald.load(args.model, outputs=args.fetch, device=args.device, signature=args.signature,
                                tags=args.tags, format=args.format, mmap=args.mmap).inputs
    shapes: dict[str, list[Shape]] = {}
    for name, given_shapes in shapes_by_name(args.input, inputs).items():
        shapes.setdefault(name.removesuffix(":0"), []).extend(shape.dims for shape in given_shapes)
    return shapes

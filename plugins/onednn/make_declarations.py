"""Makes heald_onednn/declarations.py: the part of oneDNN's C API that this package uses, compiled for cffi's ABI mode.

    pip download --no-deps onednn-devel-cpu-gomp==2023.2.0 && unzip onednn_devel*.whl -d headers
    python make_declarations.py headers/*/data/include

Needs a C preprocessor. The package's sources are searched for the names, `dnnl_...` and `omp_...`. cffi parses all of
dnnl.h in half a second, and these declarations in some milliseconds; the compiled module needs no parsing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from cffi import FFI

PACKAGE = Path(__file__).parent / "heald_onednn"
MADE = PACKAGE / "declarations.py"
OPENMP_DECLARATIONS = ("int omp_get_max_threads(void); int omp_pause_resource_all(int kind); "
                       "void omp_set_num_threads(int count);")
TYPE_PATTERN = r"\b(?:const_)?dnnl_\w+_t\b"
HEADERS = '#include "oneapi/dnnl/dnnl.h"\n#include "oneapi/dnnl/dnnl_debug.h"\n'
WHOLE = ("dnnl_exec_arg_t", "dnnl_version_t")  # structs whose fields are read


def main(include: str) -> None:
    sources = [path.read_text() for path in PACKAGE.rglob("*.py") if path != MADE]
    used = {name for text in sources for name in re.findall(r"\bdnnl_\w+", text)}
    used |= {f"dnnl_{kind}_destroy" for text in sources for kind in re.findall(r'\bmake\(\s*"(\w+)"', text)}
    used = {name for name in used if not name.endswith(("_t", "dnnl_"))}
    header = preprocess_header(include)
    everything = FFI()
    everything.cdef(header)
    library = everything.dlopen(None)
    declared = [OPENMP_DECLARATIONS]
    types: set[str] = set()
    for name in sorted(used):
        function = re.search(rf"dnnl_status_t\s+{name}\s*\([^;]*;|[\w ]+[ *]+{name}\s*\([^;]*;", header)
        if function is None:
            declared.append(f"#define {name} {getattr(library, name)}")
        else:
            declared.append(" ".join(function.group().split()))
            types.update(re.findall(TYPE_PATTERN, function.group()))
    structs = [struct_definition(header, name) for name in WHOLE]
    types.update(re.findall(TYPE_PATTERN, " ".join(structs)))
    opaque = [typedef(header, name) for name in sorted(types.difference(WHOLE))]
    compiled = FFI()
    compiled.cdef("\n".join([*opaque, *structs, *declared]))
    compiled.set_source("declarations", None)
    compiled.emit_python_code(str(MADE))
    MADE.write_text(f'"""Made by {Path(__file__).name}."""\n' + MADE.read_text())


def preprocess_header(include: str) -> str:
    """dnnl.h without the declarations of the system's headers, and without attributes."""
    command = ["gcc", "-E", "-P", "-I", include, "-x", "c", "-"]
    text = subprocess.run(command, input=HEADERS, check=True, capture_output=True, text=True).stdout  # noqa: S603
    text = text[text.rindex("typedef enum", 0, text.index("dnnl_success")):]
    return re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text)


def struct_definition(header: str, name: str) -> str:
    """The definition of a struct with its fields."""
    end = f"}} {name};"
    before = header[: header.index(end)]
    return before[before.rindex("typedef struct") :] + end


def typedef(header: str, name: str) -> str:
    """The typedef of a name: pointers to structs stay opaque, arrays become int64_t arrays, and enums become int."""
    pointer = re.search(rf"typedef (const )?(struct \w+|\w+) ?\*\s*{name};", header)
    if pointer is not None:
        return pointer.group()
    plain = re.search(rf"typedef (\w+) {name};", header)
    array = re.search(rf"typedef \w+ {name}(\[\d+\]);", header)
    if array is not None:
        return f"typedef int64_t {name}{array.group(1)};"
    return plain.group() if plain is not None else f"typedef int {name};"


if __name__ == "__main__":
    main(sys.argv[1])

"""Kernel texts as functions of the host: the C++ compiler compiles the very text, in front of it cuda_host.h."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

HEADER = Path(__file__).with_name("cuda_host.h")
# without the objects and libraries that every program gets: linking takes a third of the time
OPTIONS = ("-std=c++17", "-O1", "-march=native", "-fPIC", "-shared", "-nostdlib", "-w", "-fno-exceptions",
           "-fno-math-errno")
LIBRARIES = ("-lm", "-lgcc")
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heald-tests" / "cuda-host"
SIZES = {"i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "i32": 4, "u32": 4, "f32": 4, "int": 4, "unsigned": 4,
         "float": 4, "i64": 8, "u64": 8, "f64": 8, "double": 8, "size_t": 8, "long long": 8, "unsigned int": 4}
BARRIERS = re.compile(r"\b(BARRIER|__sync\w+|__shfl\w+|heald_shfl\w*|heald_mma\w*|heald_exchange)\b")
FUNCTION = re.compile(r"^(?:FUNCTION|__device__ __forceinline__|static __device__)[^\n;{]*?\b(\w+)\([^)]*\) \{", re.M)


class Parameter(NamedTuple):
    """A parameter of a kernel. `written`: the kernel may write through the pointer."""

    name: str
    nbytes: int
    is_pointer: bool
    written: bool


class HostKernel(NamedTuple):
    parameters: tuple[Parameter, ...]
    run: Callable[..., int]  # (grid x, y, z, block x, y, z, address of the arguments' addresses) -> 0 or -1


def is_there() -> str | None:
    """The reason for which no text can be run; None where it can."""
    if os.uname().machine != "x86_64":
        return "the fibers of cuda_host.h are written for x86-64"
    return None if shutil.which("g++") else "there is no C++ compiler (g++)"


def signature(source: str, name: str) -> tuple[Parameter, ...] | None:
    """The parameters of a kernel; None if the text has no kernel of this name."""
    declaration = re.search(
        rf"(?:KERNEL\([^)]*\)|__global__[^;{{]*?)\s*\b{re.escape(name)}\s*\(([^)]*)\)\s*\{{", source)
    if declaration is None:
        return None
    return tuple(_parameter(text) for text in declaration[1].split(",") if text.strip())


@cache
def host_kernel(source: str, name: str, macros: Sequence[str] = ()) -> HostKernel:
    """The kernel as a function of the host. Raises ValueError with the compiler's errors."""
    parameters = signature(source, name)
    assert parameters is not None
    fibers = BARRIERS.search(re.sub(r"^#define .*$", "", source, flags=re.M)) is not None
    return HostKernel(parameters, _compile(_text(source, name, parameters), (*macros, *["-DHEALD_FIBERS"] * fibers)))


def without_ptx(source: str) -> str:
    """The text without its functions that are written in PTX: cuda_host.h defines them."""
    parts, start = [], 0
    for function in FUNCTION.finditer(source):
        end = _end(source, function.end())
        if "asm" in source[function.end() : end]:
            parts.append(source[start : function.start()])
            start = end
    return "".join((*parts, source[start:]))


def _end(source: str, start: int) -> int:
    depth = 1
    for number in range(start, len(source)):
        depth += {"{": 1, "}": -1}.get(source[number], 0)
        if not depth:
            return number + 1
    return len(source)


def _text(source: str, name: str, parameters: Sequence[Parameter]) -> str:
    arguments = ", ".join(f"*(decltype(heald_type{n}(&{name}))*)arguments[{n}]" for n in range(len(parameters)))
    call = f"{name}({arguments})"
    types = "\n".join(_type_of(n, len(parameters)) for n in range(len(parameters)))
    return f"""#include "{HEADER}"
{without_ptx(source)}
{types}
static void** arguments;
#ifdef HEALD_FIBERS
static void heald_body() {{ {call}; }}
#endif
typedef unsigned u;
extern "C" int heald_launch(u gx, u gy, u gz, u bx, u by, u bz, void** given) {{
  gridDim = {{gx, gy, gz}}; blockDim = {{bx, by, bz}}; arguments = given;
  for (blockIdx.z = 0; blockIdx.z < gz; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < gy; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < gx; blockIdx.x++)
        if (HEALD_BLOCK({call})) return -1;
  return 0;
}}
"""


def _type_of(number: int, count: int) -> str:
    names = [f"T{n}" for n in range(count)]
    return (f"template <{', '.join(f'class {name}' for name in names)}> "
            f"static T{number} heald_type{number}(void (*)({', '.join(names)}));")


def _compile(text: str, options: Sequence[str]) -> Callable[..., int]:
    flags = (_processor(), *OPTIONS, *LIBRARIES, *options)
    key = sha256("\n".join((text, HEADER.read_text("utf-8"), *flags)).encode()).hexdigest()
    path = FOLDER / f"{key}.so"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            library_path = Path(folder) / "kernel.so"
            done = subprocess.run(["g++", *OPTIONS, *options, "-x", "c++", "-", "-o", str(library_path), *LIBRARIES],
                                  input=text, text=True, capture_output=True, check=False)
            if done.returncode:
                raise ValueError(f"the host's compiler refuses a kernel text:\n{done.stderr[:2000]}\n{text}")
            library_path.replace(path)
    launch = ctypes.CDLL(str(path)).heald_launch
    launch.argtypes = [ctypes.c_uint] * 6 + [ctypes.c_void_p]
    return launch


@cache
def _processor() -> str:
    """The instructions of this processor: code for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith("flags")), "")


def _parameter(text: str) -> Parameter:
    words = re.sub(r"\b(GLOBAL|RESTRICT|__restrict__)\b", " ", text).split()
    before, pointer, _ = " ".join(words).partition("*")
    name = words[-1].lstrip("*")
    if pointer:
        return Parameter(name, 8, True, "const" not in before.split())
    kind = " ".join(word for word in words[:-1] if word != "const")
    return Parameter(name, SIZES[kind], False, False)

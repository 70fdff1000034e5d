"""NVRTC, the compiler of CUDA C, from its wheel: cubins without a GPU, with the registers and spills of each kernel."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from heald_kernel_text import CUDA, SIZE, KernelText

MOST_SHARED = 48 << 10  # bytes, of a kernel that asks for no more
OPTIONS = ("--ptxas-options=-v", "--std=c++17", "-w")  # the plugin's, and a log


class Entry(NamedTuple):
    """A compiled kernel: registers of a thread, bytes that registers had no room for, bytes of local memory of a group;
    the PTX type of each parameter, the parameters that are used as addresses, and the most threads of a group."""

    registers: int
    spilled: int
    shared: int
    parameters: tuple[str, ...]
    pointers: frozenset[int]
    threads: tuple[int, ...]


class CompileError(Exception):
    """The compiler's log."""


@cache
def library() -> Any:
    """The library, or None without its wheel."""
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.[0-9]*")):
            return ctypes.CDLL(str(path))
    return None


def compile_texts(source: str, architecture: str) -> dict[str, Entry]:
    """The kernels of a program, compiled to machine code such as sm_90. Raises CompileError."""
    program = ctypes.c_void_p()
    options = [f"--gpu-architecture={architecture}", *OPTIONS]
    nvrtc = library()
    _check_status(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"text.cu", 0, None, None))
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(
        *(option.encode() for option in options)))
    try:
        log = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        if status:
            raise CompileError(log)
        assert _size(nvrtc.nvrtcGetCUBINSize, program) > 0
        return _entries(log, _read(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program))
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def join_texts(texts: Sequence[KernelText]) -> str:
    """One program with the kernels of CUDA texts, named k0, k1, ...: programs cost the compiler more than kernels. A
    single text keeps functions of its own."""
    if len(texts) == 1:
        return re.sub(rf"\b{texts[0].name}\(", "k0(", texts[0].source)
    kernels = [re.sub(rf"\b{text.name}\(", f"k{number}(", text.source[text.source.index("\nKERNEL(") :])
               for number, text in enumerate(texts)]
    return CUDA.prelude("".join(kernels)) + "".join(kernels)


def _entries(log: str, ptx: str) -> dict[str, Entry]:
    """The kernels of a program, from the assembler's log and from the PTX."""
    signatures = {name: (re.findall(r"\.param (\.\w+)", parameters), instructions)
                  for name, parameters, instructions in re.findall(r"\.entry (\w+)\(([^)]*)\)(.*?)\n}", ptx, re.DOTALL)}
    entries = {}
    for name, part in re.findall(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry|\Z)", log, re.DOTALL):
        parameters, body = signatures[name]
        shared, spills = re.search(r"(\d+) bytes smem", part), re.findall(r"(\d+) bytes spill", part)
        (registers,) = re.findall(r"Used (\d+) registers", part)
        (threads,) = re.findall(r"\.maxntid (\d+(?:, \d+)*)", body)
        entries[name] = Entry(int(registers), sum(map(int, spills)), int(shared[1]) if shared else 0, tuple(parameters),
                              _addresses(body), tuple(map(int, threads.split(", "))))
    return entries


def _addresses(body: str) -> frozenset[int]:
    """The parameters that are converted to addresses of global memory."""
    loads = dict(re.findall(r"ld\.param\.\w+\s+(%\w+), \[\w+_param_(\d+)\]", body))
    converted = re.findall(r"cvta\.to\.global\.u64\s+%\w+, (%\w+)", body)
    return frozenset(int(loads[name]) for name in converted if name in loads)


def _check_status(status: int) -> None:
    if status:
        raise CompileError(f"NVRTC status {status}")


def _size(size_of: Any, program: ctypes.c_void_p) -> int:
    size = ctypes.c_size_t()
    _check_status(size_of(program, ctypes.byref(size)))
    return size.value


def _read(size_of: Any, get: Any, program: ctypes.c_void_p) -> str:
    text = ctypes.create_string_buffer(_size(size_of, program))
    _check_status(get(program, text))
    return text.value.decode(errors="replace")


def check_compiled(texts: Sequence[KernelText], architecture: str) -> None:
    """Compile these texts. They have the parameters of the launches, and spill no register."""
    entries = compile_texts(join_texts(texts), architecture)
    for number, text in enumerate(texts):
        entry = entries[f"k{number}"]
        assert entry.parameters == (".u64",) * len(text.arguments), text.name
        assert entry.pointers <= {i for i, a in enumerate(text.arguments) if a.kind != SIZE}, text.name
        assert prod(entry.threads) == prod(text.local_size), text.name
        assert entry.shared <= MOST_SHARED, text.name
        assert entry.spilled == 0, text.name

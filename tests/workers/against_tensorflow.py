"""Compares the kernels of CPU:0 with real TensorFlow on random cases, where the package tensorflow-cpu is installed.

    PYTHONPATH=tests python -m workers.against_tensorflow [--cases 20000] [--seed 0] [--tensorflow PYTHON] [OP ...]

A case is a recorded one with something changed: types, sizes of dimensions, elements, attributes. TensorFlow's
errors and heald's must be of one class. A case that ends TensorFlow's process is not compared.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import heald
import numpy as np
from heald import errors
from heald.graphs.compiler.resolve import Resolved, resolve
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.contract.op import OpDef
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from heald.runtime.values.dtypes import DType
from heald_conformance.golden import Case, cases
from tabulate import tabulate
from tqdm import tqdm
from workers.open_answers import NOISY, ROUNDED, is_as_exact, is_same_decomposition, without_noise
from workers.tensorflow_process import TensorFlow

Array = np.ndarray[Any, Any]
TYPES = tuple(map(dtypes.named, ("float32", "float64", "int32", "int64", "float16", "bfloat16", "bool", "uint8", "int8",
                                 "int16", "uint16", "uint32", "uint64", "complex64", "complex128", "string")))
HUGE = 1e15  # whose squares float32 does not have room for
SIZES = (0, 1, 2, 3, 4, 5, 7)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e30, 1e-30)
ROUNDING = {"float64": 1e-9, "float32": 2e-4, "float16": 1e-2, "bfloat16": 6e-2, "complex128": 1e-9, "complex64": 2e-4}
RANDOM = ("Random", "Multinomial", "Truncated", "Sampler", "Shuffle", "SampleDistorted")  # seeds are tested elsewhere
FILES = ("MergeV2Checkpoints",)  # they open files that their inputs name: the config of a session here permits none
ODD = r"\([^)]* (nan|inf|huge)"  # an input with numbers of no ordinary size
KNOWN = (  # accepted differences: the pattern of the report, and the reason
    (r"^FusedBatchNorm.*is_training=False.*\n +output [345] ", "TensorFlow leaves unset what nobody may use"),
    (r"^FusedBatchNorm.*\[\d*,? ?0,.*is_training=True.*\n +output [34] ", "statistics of no images are no numbers"),
    (r"^FusedBatchNormGrad.*\n +output [34] ", "TensorFlow leaves unset what nobody may use"),
    (r"^ArgM(ax|in)\((.|\n)*Expected dimension in the range .* but got -?\d{5}", "TensorFlow misreads 16-bit axes"),
    (r"^(Empty|DynamicStitch|RaggedTensorToTensor)\(.*\n +output 0", "TensorFlow gives memory that nobody has written"),
    (r"^(Batch)?Cholesky\(.*\n +output 0 is (.|\n)*nan(.|\n)*, TensorFlow's", "TensorFlow leaves a triangle unset"),
    (r"^Depthwise\w+BackpropFilter\(\w+\[0,.*\n +output 0", "TensorFlow leaves the gradient of no images unset"),
    (r"^DataFormatDimMap\(.*\n.*dimensions must be in", "TensorFlow reads memory of others"),
    (r"^_FusedMatMul\(.*\n.*columns of the product and the bias", "TensorFlow reads memory of others"),
    (r"^_FusedMatMul\(\w+\[\d+, 0\], \w+\[0, \d+\].*\n +output 0", "TensorFlow forgets the bias of an empty product"),
    (r"^Cast\(float64.*DstT=complex64, Truncate=True.*\n +output 0", "TensorFlow cuts off all digits but the first"),
    (r"^Erf\(float64[^)]* (inf|huge)", "TensorFlow gives NaN where the square overflows"),
    (r"^Zeta\(float32.*\n +output", "TensorFlow's terms of float32 lead astray where q is below -9"),
    (r"^CTCLoss\(.*no label.*\n +output", "TensorFlow writes beyond its table where all labels are null"),
    (r"^(\w*Conv\w+|MaxPool\w*|AvgPool\w*|LRN|CTCLoss)\w*" + ODD, "of NaN and infinity"),
    (r"^(Batch)?(Cholesky|LogMatrixDeterminant|Lu|Matrix(Determinant|Inverse|Solve(Ls)?|TriangularSolve)|Qr)" + ODD
     + r".*\n +output", "of NaN and infinity"),
    (r"^(Batch)?SelfAdjointEig(V2)?\([^)]* (nan|inf).*\n +InvalidArgument: Self-adjoint", "TensorFlow misses some NaN"),
    (r"^(Batch)?Svd\([^)]* (nan|inf).*compute_uv=False.*\n +output", "TensorFlow leaves values of NaN unset"),
    (r"^Eig\(complex64[^)]* huge.*\n.*TensorFlow: \w+: Eigen decomposition", "TensorFlow's squares overflow"),
    (r"^AudioSpectrogram" + ODD + r".*\n +output", "of NaN and infinity"),
    (r"^BatchMatrixSolveLs\(\w+\[\d+, 0, .*\n +output", "TensorFlow gives memory that nobody has written"),
    (r"^SparseSegment\w+Grad(V2)?\(.*\n +InvalidArgument: indices\S+ = -?\d+ is not in \[0, 0\), TensorFlow gives",
     "of a gradient without rows TensorFlow does not look at the indices"),
    (r"^GRUBlockCellGrad\(\w+\[\d+, \d+\], \w+\[\d+, 0\].*\n +output 0",
     "TensorFlow leaves the gradient of no cells unset"),
    (r"^MatrixSolveLs\(\w+\[(\d+, )*0, \d+\].*\n +output 0", "TensorFlow leaves the solution of no equations unset"),
    (r"^(Igammac?|ExtractGlimpse(V2)?|SparseMatMul)" + ODD + r".*\n +output", "of NaN and infinity"),
    (r"^MatrixSolveLs" + ODD + r".*\n +no error, .*ill-conditioned", "of NaN and infinity"),
    (r"^Parse\w*Example\(.*\n.*, TensorFlow gives \[\]$", "TensorFlow's op has no outputs, and does not run"),
    (r"^(Batch)?Matrix(Inverse|Solve)\([^)]* nan.*\n +InvalidArgument: Input matrix is not invertible",
     "TensorFlow's least pivot depends on the lane that has a NaN"),
    (r"^SparseSegment(Mean|SqrtN|Sum)Grad\([^)]*, int\d+\[0\], int\d+\[0\], .*\n +output",
     "TensorFlow gives memory that nobody has written"),
    (r"^SparseBincount\(.*\n.*(weights and values must have the same shape|must all be non-negative)",
     "TensorFlow reads memory of others"),
    (r"^BandedTriangularSolve\(\w+\[\d+, \d+, .*\n +InvalidArgument: Input matrix is not invertible",
     "TensorFlow looks at the pivots of the first matrix alone"),
    (r"^FractionalAvgPoolGrad\(.*\n.*and the output's dimension [03] must be", "TensorFlow reads memory of others"),
    (r"^SparseAdd\(.* T=((?!complex)(\w+), Treal=(?!\2 )|complex64, Treal=(?!float32)|complex128, Treal=(?!float64))"
     r".*\n +output", "TensorFlow takes the threshold's bytes for T"),
    (r"^RaggedCross\(.*\n.*the number of indices and of values must be equal", "TensorFlow does not look"),
    (r"^(Sparse|Dense)ToSparseSet\w+\(.*validate_indices=False.*\n +InvalidArgument: indices\S+ = .*out of bounds",
     "told not to, TensorFlow does not look at indices"),
    (r"^(Sparse|Dense)ToSparseSet\w+\(.*, unordered.*validate_indices=False.*\n +output",
     "TensorFlow meets a group twice whose elements are apart"),
    (r"^ParseSequenceExample\(.*\n +InvalidArgument: .*TensorFlow gives \[\]$",
     "TensorFlow runs no op without outputs"),
    (r"^Unicode\w+\(string\[(?!1?\]).*input_encoding=UTF-(16|32),.*\n +output",
     "TensorFlow decodes by the byte order mark of a string before"),
    (r"^\w+\(complex[^)]* (nan|inf|huge).*\n +output", "complex numbers beyond the range of their squares"),
    (r"^(Cumulative\w+|Segment\w+|Unsorted\w+|NthElement)\([^)]* nan.*\n +output", "NaN is passed on"),
    (r"^CumulativeLogsumexp\([^)]* inf.*\n +output", "TensorFlow's scan makes NaN of two infinities"),
    (r"^Inplace(Add|Sub)\((bool|string)\[0,", "of nothing TensorFlow adds what cannot be added"),
    (r"^(Selu|Elu|Soft\w+|\w+Grad)\(b?float16.*\n +output", "two-byte floats are rounded once here"),
    (r"^(ResizeBilinearGrad|CTCLoss|ImageProj\w+)\(.*float64.*\n +output", "TensorFlow computes in float32 here"),
    (r"^(I?R?FFT\w*)\(.*\n.*must have length of at least", "of nothing TensorFlow gives what it has not written"),
    (r"^(Adjust\w+|CombinedNon\w+|ImageProj\w+|I?R?FFT\w*|ScaleAndTranslate|Resize\w+|Polygamma|TopK\w*)" + ODD
     + r".*\n +output", "of NaN and infinity"),
    (r"^ScaleAndTranslate\(.*\n.*at least one channel", "of nothing there is nothing"),
    (r"^_FusedConv2D\(.*\n.*TensorFlow: (Unimpl|Invalid)", "heald has other types and layouts than TensorFlow"),
    (r"^_FusedConv2D\(.*\n.*takes HWIO filters", "TensorFlow does not look at the layout of filters"),
    (r"^_FusedConv2D\((float64.*float32|float16.*float32)\[.*\n +output", "TensorFlow takes the bytes of a bias for T"),
    (r"^EncodePng\(.*\n +output 0", "another compression of the same image"),
    (r"^TopKV2\(.*sorted=False.*\n +output", "in no order"),
    (r"^\w*Conv\w+\(.*NC(D)?HW.*\n.*TensorFlow: \w+: .*(NHWC|NDHWC|supports)", "heald has NCHW on CPUs"),
    (r"^FusedBatchNormGrad\w*\(.*NCHW, is_training=False.*\n +no error, .*only support NHWC", "heald has NCHW on CPUs"),
    (r"^(_Fused)?(Conv|Dep)\w+\(.*\n.*filter must not have zero", "TensorFlow documents it, its kernels do without"),
    (r"^AvgPoolGrad\(.*\n.*grad must have the shape of the output", "TensorFlow does not look"),
    (r"^Truncate(Div|Mod)\(.*\n.*division by zero", "an error in both, and Internal is none of the caller's"),
    (r"\n +Unimplemented: no kernel for .*TensorFlow: (InvalidArgument|Internal)", "types that go with no kernel"),
    (r"\n +InvalidArgument: .*TensorFlow: (Unimplemented|Internal|9|10|OutOfRange)", "InvalidArgument in other words"),
    (r"\n +no error, TensorFlow: (Unimplemented|Internal)", "heald has more"),
)
KNOWN_OF_QUANTISED = (  # those of ops on quantised numbers, in place of the others
    (r"^QuantizedResizeBilinear\(\w+\[0,.*\n +output 1 has shape \(\), TensorFlow's \(0,\)",
     "of no images TensorFlow gives no limits"),
    (r"^QuantizedMatMul\(\w+\[(\d+, 0|0, \d+)], \w+\[(\d+, 0|0, \d+)].*\n +output 0",
     "TensorFlow leaves the product of nothing unset"),
    (r"^QuantizeV2\([^)]* (nan|inf).* T=qint(8|16), mode=(MIN_COMBINED|SCALED).*axis=-1.*\n +output 0",
     "TensorFlow's NaN is the lowest integer in groups of 8, and 0 in the rest"),
    (r"^QuantizeV2\(.*axis=\d.*\n +output 1 has shape \(1,\), TensorFlow's \(\)",
     "TensorFlow's limits of one slice are no vector, against its shape function"),
    (r"^QuantizeAndDequantize(V\d)?\(\w+\[[^]]*][^,)]* nan.*range_given=False.*\n +output 0",
     "TensorFlow forgets the elements before the last NaN of a lane"),
    (r"^QuantizedInstanceNorm\(.*\n +output 0, by 1, is", "a sum in another order, halfway between two integers"),
    (r"^QuantizedInstanceNorm\([^)]* inf.*\n +output [12] is (inf|nan), TensorFlow's (inf|nan)",
     "of NaN alone TensorFlow's ends are NaN or infinity, by their number"),
    (r"^Quantized(Add|Mul)\((\w+\[(\d+, )+1]|\w+\[[^]]*], \w+\[(\d+, )+1]).*\n +output 0",
     "TensorFlow repeats the smaller tensor as a whole, whatever its dimensions"),
    (r"^QuantizedConcat\(.*\w\[(\d+, )*0[],].*\n +output 0", "TensorFlow skips empty inputs, not their limits"),
    (r"^RequantizePerChannel\(qint32\[[^]]*\b0\b.*\n +no error, .*could not execute a primitive",
     "oneDNN does not take nothing"),
)
NOISY_ANSWERS = 6  # of TensorFlow, of which one shows that an element is noise
SIZED = ("Range", "RaggedRange")  # their numbers say how much memory they take
CLASSES = {3: "InvalidArgument", 5: "NotFound", 11: "OutOfRange", 12: "Unimplemented", 13: "Internal"}


@dataclass
class Trial:
    """One call of an op: attributes as kernels see them, inputs in order."""

    op: OpDef
    attrs: dict[str, Any]
    inputs: list[Array]
    based_on: str

    def __str__(self) -> str:
        shown = ", ".join(f"{t.dtype.name}{list(x.shape)}{beyond(x)}"
                          for t, x in zip(self.tensors(), self.inputs, strict=True))
        attrs = ", ".join(f"{k}={v}" for k, v in self.attrs.items())
        marks = ", no label" * self.all_null() + ", unordered" * self.is_unordered()
        return f"{self.op.name}({shown}{marks}) {attrs} (from {self.based_on})"

    def all_null(self) -> bool:
        """True where all labels of a loss are beyond the last class."""
        return self.op.name == "CTCLoss" and bool((self.inputs[2] >= self.inputs[0].shape[2] - 1).all())

    def is_unordered(self) -> bool:
        """True where the indices of one of the sparse sets are not in row-major order."""
        places = {"SparseToSparseSetOperation": (0, 3), "DenseToSparseSetOperation": (1,)}.get(self.op.name, ())
        return any(x.tolist() != sorted(x.tolist()) for x in (self.inputs[place] for place in places))

    def tensors(self) -> list[Any]:
        return self.op.expand_inputs(self.attrs)


def beyond(x: Array) -> str:
    """The kinds of extraordinary numbers in a tensor: nan, inf, huge."""
    if x.dtype.kind not in "fcV":
        return ""
    with np.errstate(all="ignore"):
        size = np.abs(x.astype(np.complex128))
    kinds = {"nan": np.isnan(size), "inf": np.isinf(size), "huge": (size > HUGE) & np.isfinite(size)}
    return "".join(f" {kind}" for kind, where_true in kinds.items() if where_true.any())


def trials(ops: Sequence[str], count: int, seed: int) -> Iterator[Trial]:
    for number in range(count):
        rng = random.Random(f"{seed} {number}")  # noqa: S311 - no secrets
        op = ops[number % len(ops)]
        small_cases = [case for case in cases()[op] if len(case.inputs) < 20]
        case = rng.choice(small_cases or cases()[op])
        entry = resolve(case.graph(), runtime().host.registries.ops)["op"]
        if isinstance(entry, Resolved):
            yield changed_trial(entry, case, rng)


def changed_trial(entry: Resolved, case: Case, rng: random.Random) -> Trial:
    attrs = dict(entry.attrs)
    for name, declared in entry.op.attrs.items():
        if declared.type == "type" and rng.random() < 0.5:
            attrs[name] = rng.choice([t for t in declared.allowed or TYPES if t in TYPES] or [attrs[name]])
        elif declared.type == "bool" and rng.random() < 0.3:
            attrs[name] = not attrs[name]
        elif declared.allowed and declared.type == "string" and rng.random() < 0.3:
            attrs[name] = rng.choice(declared.allowed)
    lengths = {n: rng.choice(SIZES) if rng.random() < 0.5 else n
               for n in sorted({n for x in case.inputs for n in x.shape})}
    tensors = entry.op.expand_inputs(attrs)
    typed = {a.name for a in entry.op.inputs if a.type_attr in ("T", "dtype", "Tparams", "SrcT") or a.type_list_attr}
    if case.op in SIZED:
        typed.clear()
    inputs = [structure(rng, x, t.dtype) if t.arg not in typed and t.dtype.kind in "iu" and x.dtype.kind in "iu"
              else data(rng, x, t.dtype, lengths) for x, t in zip(case.inputs, tensors, strict=True)]
    return Trial(entry.op, attrs, inputs, case.id)


def structure(rng: random.Random, x: Array, dtype: DType) -> Array:
    """An input that says how: axes, sizes, indices. Mostly as it is, else one element is another."""
    new = x.astype(dtype.numpy)
    if new.size and rng.random() < 0.3:
        new = new.copy()
        index = rng.randrange(new.size)
        new.reshape(-1)[index] += 1 if dtype.kind == "u" else rng.choice((-1, 1))
    return new


def data(rng: random.Random, x: Array, dtype: DType, lengths: dict[int, int]) -> Array:
    shape = tuple(lengths[n] for n in x.shape)
    numbers = np.random.default_rng(rng.getrandbits(32))
    if dtype is dtypes.string:
        recorded = [word for word in x.flat if isinstance(word, bytes)]
        words = [b"", b"a", b"12", b"-3.5", "\u00e4\u00df".encode(), b" x y ", *recorded]
        elements = np.empty(shape, object)
        elements.reshape(-1)[:] = [rng.choice(words) for _ in range(elements.size)]
        return elements
    if dtype.kind == "b":
        return numbers.random(shape) < 0.5
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype.numpy)
        if rng.random() < 0.2:
            return numbers.integers(bounds.min, bounds.max, shape, dtype.numpy, endpoint=True)
        return numbers.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype.numpy)
    elements = numbers.normal(0, rng.choice((0.3, 1, 10)), shape)
    if rng.random() < 0.3:
        elements = np.where(numbers.random(shape) < 0.3, numbers.choice(SPECIAL, shape), elements)
    if rng.random() < 0.2:
        elements = np.abs(elements)
    with np.errstate(all="ignore"):
        if dtype.kind == "c":
            elements = elements + 1j * numbers.normal(0, 1, shape)
        return np.asarray(elements).astype(dtype.numpy)


def answer_of_tensorflow(tensorflow: TensorFlow, trial: Trial, way: str) -> Any:
    """TensorFlow's answer, see TensorFlow.answer."""
    return tensorflow.answer(trial.op, trial.attrs, [*zip(trial.tensors(), trial.inputs, strict=True)], way)


def ours(trial: Trial) -> list[Array] | errors.HealdError:
    nodes = [Node(f"i{i}", "Placeholder", attrs={"dtype": t.dtype, "shape": None})
             for i, t in enumerate(trial.tensors())]
    nodes.append(Node("op", trial.op.name, [n.name for n in nodes], attrs=trial.attrs))
    count = len(trial.op.expand_outputs(trial.attrs))
    try:
        with heald.Session(Graph(nodes), device="CPU:0") as session:
            results: list[Array] = session.run([f"op:{i}" for i in range(count)],
                                               {f"i{i}": x for i, x in enumerate(trial.inputs)},
                                               targets=() if count else ["op"])
            return results
    except errors.HealdError as error:
        return error


def verdict(want: Any, got: list[Array] | errors.HealdError) -> str:
    """The fault; an empty text where both agree."""
    if isinstance(want, tuple):
        code, message = want[0], re.sub(r"^{{function_node [^}]*}} ", "", want[1])
        if not isinstance(got, errors.HealdError):
            return f"no error, TensorFlow: {CLASSES.get(code, code)}: {message[:150]}"
        return "" if got.code == code else (f"{type(got).__name__}: {got.message[:150]}, "
                                            f"TensorFlow: {CLASSES.get(code, code)}: {message[:150]}")
    if isinstance(got, errors.HealdError):
        return f"{type(got).__name__}: {got.message[:200]}, TensorFlow gives {[x.shape for x in want]}"
    expected = [np.array(w, object) if isinstance(w, bytes) else w for w in want]  # NumPy would cut zeros off their end
    for number, (g, w) in enumerate(zip(got, expected, strict=True)):
        if g.shape != np.shape(w):
            return f"output {number} has shape {g.shape}, TensorFlow's {np.shape(w)}"
        if not near(g, np.asarray(w)):
            return f"output {number}{one_apart(g, np.asarray(w))} is {short(g)}, TensorFlow's {short(w)}"
    return ""


def agree_as_defined(tensorflow: TensorFlow, trial: Trial, want: Any, got: list[Array] | errors.HealdError) -> bool:
    """True where the op's definition allows both answers, see open_answers."""
    op = trial.op.name
    if isinstance(want, tuple) or isinstance(got, errors.HealdError):
        return False
    if op in NOISY:
        others = [answer_of_tensorflow(tensorflow, trial, "eager") for _ in range(NOISY_ANSWERS)]
        return not verdict(without_noise(want, others, got), got)
    if op in ROUNDED and trial.attrs["T"] is dtypes.float32:
        exact = ours(Trial(trial.op, {"T": dtypes.float64}, [x.astype(np.float64) for x in trial.inputs], ""))
        return isinstance(exact, list) and is_as_exact(got, want, exact)
    return is_same_decomposition(op, trial.attrs, trial.inputs[0], got, want)


def short(array: Array) -> str:
    return np.array2string(np.asarray(array), threshold=8)


def near(got: Array, want: Array) -> bool:
    if got.dtype.kind == "O" or want.dtype.kind in "OSbiu":
        return bool(np.array_equal(got, want.astype(got.dtype)))
    limit = ROUNDING.get(dtypes.of_numpy(got.dtype).name, 1e-6)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    g, w = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        finite = np.abs(w[np.isfinite(w)])
        return bool(np.allclose(g, w, limit, limit * np.clip(finite.max(initial=0), 1e-2, 1e3), equal_nan=True))


def one_apart(got: Array, want: Array) -> str:
    """A note on integers that differ by 1 at most, as by a rounding."""
    if got.dtype.kind not in "iu" or np.abs(got.astype(np.float64) - want.astype(np.float64)).max(initial=0) > 1:
        return ""
    return ", by 1,"


@cache
def able() -> list[str]:
    """The ops with recorded cases and a kernel, that give the same again for the same."""
    kernels = runtime().host.registries.kernels
    return sorted(op for op in cases() if kernels.candidates(op, "CPU") and op not in FILES
                  and not any(r in op for r in RANDOM))


def compare(ops: Sequence[str], count: int, seed: int, *, python: str = sys.executable,
            quiet: bool = False) -> tuple[Counter[str], list[str]]:
    """The number of cases of each outcome, and the reports of wrong ones. `python` has the package tensorflow."""
    tensorflow, ended, wrong = TensorFlow(python), Counter[str](), []
    for trial in tqdm(trials(ops, count, seed), total=count, disable=quiet or None):
        try:
            want = answer_of_tensorflow(tensorflow, trial, "eager")
        except LookupError:
            ended["not asked"] += 1
            continue
        if want is None:
            ended["TensorFlow ended its process"] += 1
        elif isinstance(want, tuple) and (want[0] is None or "No OpKernel" in want[1] or "Could not find" in want[1]
                                          or "no registered" in want[1].lower()):
            ended["TensorFlow has no kernel"] += 1
        else:
            got = ours(trial)
            said = verdict(want, got)
            if said and agree_as_defined(tensorflow, trial, want, got):
                said = ""
            if said and isinstance(got, errors.InvalidArgument) and isinstance(want, list):
                refused = isinstance(answer_of_tensorflow(tensorflow, trial, "graph"), tuple)
                said, want = ("", (3, "")) if refused else (said, want)
            report = f"{trial}\n    {said}"
            known = KNOWN_OF_QUANTISED if "quanti" in trial.op.name.lower() else KNOWN
            known_difference = next((f"known: {why}" for shape, why in known if said and re.search(shape, report)), "")
            ended[known_difference
                  or ("wrong" if said else "an error in both" if isinstance(want, tuple) else "equal")] += 1
            if said and not known_difference:
                wrong.append(report)
    tensorflow.close()
    return ended, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", metavar="OP", help="all that have a kernel by default")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tensorflow", default=sys.executable, metavar="PYTHON",
                        help="the interpreter that has the package tensorflow; this one by default")
    options = parser.parse_args()
    ended, wrong = compare(options.ops or able(), options.cases, options.seed, python=options.tensorflow)
    print("\n".join(wrong))
    print(tabulate(ended.most_common(), headers=["", "cases"]))
    print(tabulate(Counter(line.partition("(")[0] for line in wrong).most_common(), headers=["wrong", "cases"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""A window sliding over NHWC images: its lengths, and the text that computes its position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heald.api import Attrs, errors, geometry

from .broadcast import Dims
from .dialect import Target

Pair = tuple[int, int]  # height, width


@dataclass(frozen=True)
class Window:
    """`taps` apart by `dilations`, at `size` places every `strides`, the first `before` elements into the padding."""

    shape: Dims  # of the images, NHWC
    taps: Pair
    strides: Pair
    dilations: Pair
    size: Pair
    before: Pair

    @property
    def is_point(self) -> bool:
        """True where a place is an element and every element has one."""
        return self.taps == self.strides == (1, 1) and self.size == self.shape[1:3]

    @property
    def places(self) -> int:
        return self.shape[0] * self.size[0] * self.size[1]

    @property
    def sizes(self) -> dict[str, int]:
        """The parameters that the text uses."""
        names = {"H": self.shape[1], "W": self.shape[2], "C": self.shape[3], "OH": self.size[0], "OW": self.size[1]}
        for letter, pair in (("K", self.taps), ("S", self.strides), ("D", self.dilations), ("P", self.before)):
            names |= {f"{letter}H": pair[0], f"{letter}W": pair[1]}
        return names


def sliding(attrs: Attrs, shape: Dims, taps: Sequence[int]) -> Window:
    """The window of a convolution or pooling op with these attributes. Raises Unimplemented, InvalidArgument."""
    if attrs["data_format"] != "NHWC":
        raise errors.Unimplemented(f"no kernel text for {attrs['data_format']}")
    strides, dilations = attrs["strides"], attrs.get("dilations", (1, 1, 1, 1))
    if {strides[0], strides[3], dilations[0], dilations[3]} != {1}:
        raise errors.Unimplemented("no kernel text for strides or dilations in the batch and depth dimensions")
    if min(*taps, *strides, *dilations) < 1:
        raise errors.Unimplemented("no kernel text for windows without elements")
    h, w = geometry.spatial_windows(attrs, shape[1:3], taps)
    assert h.size is not None
    assert w.size is not None
    return Window(shape, (taps[0], taps[1]), (strides[1], strides[2]), (dilations[1], dilations[2]), (h.size, w.size),
                  (h.before, w.before))


def output_position(i: int | str) -> list[str]:
    """From place m<i>: the element h<i>, w<i> under the first tap, and the image's first element a<i>."""
    return [
        f"const u32 q{i} = (u32)m{i} / (u32)OW;",
        f"const i32 h{i} = (i32)(q{i} % (u32)OH * (u32)SH) - (i32)PH;",
        f"const i32 w{i} = (i32)((u32)m{i} % (u32)OW * (u32)SW) - (i32)PW;",
        f"const size_t a{i} = (size_t)(q{i} / (u32)OH) * H * W * C;",
    ]


def inside(i: int | str) -> str:
    """An expression: true if the tap kh, kw of place i is not in the padding."""
    return f"((u32)(h{i} + kh) < (u32)H && (u32)(w{i} + kw) < (u32)W)"


def pixel(i: int | str) -> str:
    """An expression: the first channel under the tap kh, kw of place i."""
    return f"a{i} + ((size_t)(h{i} + kh) * W + (w{i} + kw)) * C"


TAP_LOOP = "for (i32 kh = 0; kh < (i32)(KH * DH); kh += (i32)DH) for (i32 kw = 0; kw < (i32)(KW * DW); kw += (i32)DW) {"

# On a CPU a work-item goes along a row of places: only w and m change, and no tap in the padding is visited.
_ROW = [
    "const size_t row = GLOBAL_ID(1);", "if (row >= (size_t)rows) return;",
    "const i32 h = (i32)(row % (size_t)OH * SH) - (i32)PH, kh0 = h < 0 ? (i32)((DH - 1 - h) / DH) : 0;",
    "const size_t a = row / (size_t)OH * H * W * C;",
]
_ALONG_ROW = ["i32 w = -(i32)PW;", "for (size_t m = row * OW; m < (row + 1) * OW; m++, w += (i32)SW) {"]
_INNER_TAPS = [
    "const i32 kw0 = w < 0 ? (i32)((DW - 1 - w) / DW) : 0;",
    "for (i32 kh = kh0; kh < KH && h + kh * DH < H; kh++) for (i32 kw = kw0; kw < KW && w + kw * DW < W; kw++) {",
    "const size_t tap = kh * KW + kw, p = a + ((size_t)(h + kh * DH) * W + (w + kw * DW)) * C;",
]


def items(target: Target, window: Window) -> tuple[list[str], dict[str, int]]:
    """The first lines of a work-item, and the sizes: a work-item has one place, on a CPU a row of places."""
    if target.cpu:
        return _ROW, {"rows": window.shape[0] * window.size[0]}
    head = ["const size_t m = GLOBAL_ID(1);", "if (m >= (size_t)places) return;", *output_position("")]
    return head, {"places": window.places}


def over_places(target: Target, body: Sequence[str]) -> list[str]:
    """`body` for each place m of a work-item."""
    return [*_ALONG_ROW, *body, "}"] if target.cpu else [*body]


def over_taps(target: Target, body: Sequence[str]) -> list[str]:
    """`body` for each tap of a place that is no padding: `tap` is its number, `p` the first channel under it."""
    if target.cpu:
        return [*_INNER_TAPS, *body, "}"]
    return ["size_t tap = 0;", TAP_LOOP, f"if {inside('')} {{", f"const size_t p = {pixel('')};",
            *body, "}", "tap++;", "}"]

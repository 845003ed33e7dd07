"""Golden vectors of single ops, from torch in fp64.

Writes tests/golden/ops/cases.json: each case is a program in text form (espalier/program/text.h), its weights, one or more calls
(rows, positions, parents, committed path) and the outputs of the last call. A program has one op of interest; its operands are
cut out of the embeddings, and its result is brought out, by linear layers whose weights are rows of the identity.

Run from python/:  python -m espalier_tools.golden.ops
"""

import json

import torch
import torch.nn.functional as F
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from espalier_tools.golden import GOLDEN

TARGET = GOLDEN / "ops/cases.json"
TREES = [[-1], [-1, 0, 1], [-1, -1, 0, 0, 2, 1, 5], [-1, 0, 0, 1, 1, 3, -1, 6, 6]]
random = torch.Generator().manual_seed(20)


def draw(*shape: int, scale: float = 1.0) -> torch.Tensor:
    """Values that are short in decimal and exact in bf16."""
    return (torch.randn(shape, generator=random, dtype=torch.float64) * scale * 16).round().clamp(-120, 120) / 16


def pick(*choices):
    return choices[int(torch.randint(len(choices), (1,), generator=random))]


class Text:
    """Writes the text form of a program; ids are given in order of declaration."""

    def __init__(self, rows: int, hidden: int, kernel: int = 0, head: str = "logits", selected: int | None = None):
        self.rows, self.selected, self.head = rows, rows if selected is None else selected, head
        self.states, self.weights, self.values, self.inputs, self.ops, self.outputs = [], [], [], [], [], []
        self.tensors = {}
        self.hidden = hidden
        self.x = self.input("embeddings", "f32", rows, hidden)
        self.positions = self.input("positions", "i32", rows, 1)
        self.ancestors = self.input("ancestors", "i32", rows, rows)
        self.gather = self.input("conv_gather", "i32", rows, kernel - 1) if kernel else None
        self.chosen = self.input("selected", "i32", self.selected, 1)

    def value(self, name: str, dtype: str, rows: int, channels: int) -> str:
        self.values.append(f"{name} {dtype}[{rows}, {channels}]")
        return f"%{len(self.values) - 1}"

    def input(self, name: str, dtype: str, rows: int, channels: int) -> str:
        self.inputs.append(self.value(name, dtype, rows, channels))
        return self.inputs[-1]

    def weight(self, name: str, tensor: torch.Tensor, first: int = 0, count: int | None = None) -> str:
        self.tensors[name] = tensor
        rows = 1 if tensor.ndim == 1 else tensor.shape[0]
        line = f"{name} rows={first}+{rows if count is None else count}/{rows} columns={tensor.shape[-1]}"
        if line not in self.weights:
            self.weights.append(line)
        return f"@{self.weights.index(line)}"

    def state(self, name: str, kind: str, rows: int, channels: int) -> str:
        self.states.append(f"{name} {kind}[{rows}, {channels}]")
        return f"${len(self.states) - 1}"

    def op(self, kind: str, inputs: list[str], channels: int, weights=(), state="", rows=None, **attributes) -> str:
        outputs = []
        if channels:
            outputs.append(self.value("y", "f32", self.rows if rows is None else rows, channels))
        if kind == "head_argmax":
            outputs.append(self.value("index", "i32", self.rows if rows is None else rows, channels))
        listed = ", ".join(f"{name}={json.dumps(value)}" for name, value in attributes.items())
        result = ", ".join(outputs) + " = " if outputs else ""
        tail = "".join(f" {item}" for item in [*weights, state] if item) + (f" {{{listed}}}" if listed else "")
        self.ops.append(f"{result}{kind}({', '.join(inputs)}){tail}")
        self.outputs = outputs
        return outputs[0] if outputs else ""

    def cut(self, first: int, count: int) -> str:
        """Channels [first, first + count) of the embeddings."""
        identity = torch.eye(self.hidden, dtype=torch.float64)
        return self.op("linear", [self.x], count, [self.weight("cut", identity, first, count)])

    def finish(self, y: str = "", channels: int = 0, rows: int | None = None) -> str:
        """The text; `y` becomes the logits through an identity."""
        if y:
            identity = self.weight("identity", torch.eye(channels, dtype=torch.float64))
            self.op("head_logits", [y], channels, [identity], rows=rows)
        lines = [f"program case rows={self.rows} kv_rows=32 selected={self.selected} head={self.head}"]
        for sigil, word, items in [("$", "state", self.states), ("@", "weight", self.weights), ("%", "value", self.values)]:
            lines += [f"{word} {sigil}{index} {item}" for index, item in enumerate(items)]
        lines += ["inputs " + " ".join(self.inputs), *self.ops, "outputs " + " ".join(self.outputs)]
        return "\n".join(lines) + "\n"


def depths(parents: list[int]) -> list[int]:
    found = []
    for parent in parents:
        found.append(0 if parent < 0 else found[parent] + 1)
    return found


def path(parents: list[int], row: int) -> list[int]:
    found = []
    while row >= 0:
        found.insert(0, row)
        row = parents[row]
    return found


def call(x: torch.Tensor, parents: list[int], committed: int = 0, commit=()) -> dict:
    positions = [committed + depth for depth in depths(parents)]
    return {"embeddings": x.flatten().tolist(), "positions": positions, "parents": parents, "commit": list(commit)}


def stored(tensor: torch.Tensor) -> dict:
    if tensor.ndim == 2 and torch.equal(tensor, torch.eye(*tensor.shape, dtype=tensor.dtype)):
        return {"identity": len(tensor)}
    return {"shape": list(tensor.shape), "values": tensor.flatten().tolist()}


def case(name: str, program: str, text: Text, calls: list[dict], expected: torch.Tensor, index=None) -> dict:
    tensors = {key: stored(value) for key, value in text.tensors.items()}
    rounded = [float(f"{value:.9g}") for value in expected.flatten().tolist()]
    found = {"name": name, "program": program, "weights": tensors, "calls": calls, "expected": rounded}
    return found | ({"expected_index": index.flatten().tolist()} if index is not None else {})


def rowwise(name: str, channels: int, parts: int, outputs: int, apply, oracle) -> dict:
    """A case of an op that treats rows alike. apply(text, operands) adds it; oracle(operands) computes it."""
    parents = pick(*TREES)
    x = draw(len(parents), channels * parts, scale=1.5)
    text = Text(len(parents), channels * parts)
    operands = [text.cut(part * channels, channels) for part in range(parts)] if parts > 1 else [text.x]
    program = text.finish(apply(text, operands), outputs)
    return case(f"{name}_{channels}", program, text, [call(x, parents)], oracle(list(x.split(channels, -1))))


def linear_cases() -> list[dict]:
    cases = []
    for inputs, outputs in [(1, 1), (3, 5), (16, 16), (17, 33), (40, 15), (64, 7)]:
        weight, bias = draw(outputs, inputs, scale=0.5), draw(outputs)
        for used in (None, bias):

            def apply(text, operands, used=used):
                weights = [text.weight("w", weight)] + ([text.weight("b", bias)] if used is not None else [])
                return text.op("linear", operands, outputs, weights)

            name = f"linear{'_bias' if used is not None else ''}_to_{outputs}_from"
            cases.append(rowwise(name, inputs, 1, outputs, apply, lambda x, used=used: F.linear(x[0], weight, used)))
    return cases


def norm_cases() -> list[dict]:
    cases = []
    for channels, group in [(1, 1), (6, 2), (16, 16), (33, 11), (48, 16)]:
        weight, bias, epsilon = draw(group), draw(channels), pick(1e-6, 1e-5, 1e-2)

        def rms(text, operands):
            return text.op("rms_norm", operands, channels, [text.weight("w", weight)], epsilon=epsilon)

        def rms_oracle(x):
            return F.rms_norm(x[0].unflatten(-1, (-1, group)), (group,), weight, epsilon).flatten(-2)

        cases.append(rowwise(f"rms_norm_group{group}", channels, 1, channels, rms, rms_oracle))
        wide = draw(channels)

        def layer(text, operands):
            weights = [text.weight("w", wide), text.weight("b", bias)]
            return text.op("layer_norm", operands, channels, weights, epsilon=epsilon)

        def layer_oracle(x):
            return F.layer_norm(x[0], (channels,), wide, bias, epsilon)

        cases.append(rowwise("layer_norm", channels, 1, channels, layer, layer_oracle))
    return cases


def elementwise_cases() -> list[dict]:
    ops = [
        ("gated_silu", 2, {}, lambda x: F.silu(x[0]) * x[1]),
        ("add", 2, {}, lambda x: x[0] + x[1]),
        ("mul", 2, {}, lambda x: x[0] * x[1]),
        ("gelu", 1, {"approximation": "erf"}, lambda x: F.gelu(x[0])),
        ("gelu", 1, {"approximation": "tanh"}, lambda x: F.gelu(x[0], approximate="tanh")),
    ]
    cases = []
    for name, parts, attributes, oracle in ops:
        for channels in (1, 15, 16, 33):

            def apply(text, operands):
                return text.op(name, operands, channels, **attributes)

            label = "_".join([name, *attributes.values()])
            cases.append(rowwise(label, channels, parts, channels, apply, oracle))
    return cases


def rotated(x: torch.Tensor, angles: torch.Tensor, scale: float, style: str) -> torch.Tensor:
    """x: [rows, heads, 2n], angles: [rows, n]."""
    if style == "neox":
        both = torch.cat([angles, angles], -1)
        return apply_rotary_pos_emb(x, x, both.cos() * scale, both.sin() * scale, unsqueeze_dim=1)[0]
    turned = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * torch.polar(torch.tensor(scale).double(), angles)[:, None]
    return torch.view_as_real(turned).flatten(-2)


def rope_cases() -> list[dict]:
    cases = []
    for heads, head_dim, pairs in [(1, 2, 1), (3, 8, 4), (2, 10, 3), (5, 16, 8)]:
        for style in ("neox", "interleaved"):
            channels, scale, committed = heads * head_dim, pick(1.0, 1.25), 7
            frequencies = torch.tensor([0.9 * 0.4**i for i in range(pairs)]).tolist()  # exact in fp32
            parents = pick(*TREES)
            x = draw(len(parents), channels)
            text = Text(len(parents), channels)
            attributes = {"head_dim": head_dim, "style": style, "frequencies": frequencies, "scale": scale}
            program = text.finish(text.op("rope", [text.x, text.positions], channels, **attributes), channels)
            one_call = call(x, parents, committed)
            angles = (torch.tensor(one_call["positions"])[:, None] * torch.tensor(frequencies)).double()
            by_head = x.unflatten(-1, (heads, head_dim))
            turned = rotated(by_head[..., : 2 * pairs], angles, scale, style)
            expected = torch.cat([turned, by_head[..., 2 * pairs :]], -1)
            cases.append(case(f"rope_{style}_{heads}x{head_dim}_{pairs}", program, text, [one_call], expected))
    return cases


def state_case(name: str, text: Text, program: str, parents: list[int], oracle) -> dict:
    """Two calls: a first tree, of which a path is committed, and a second one. oracle(sequence) gives all its rows."""
    first = pick(*TREES)
    kept = path(first, len(first) - 1)
    history, x = draw(len(first), text.hidden), draw(len(parents), text.hidden)
    calls = [call(history, first, 0, kept), call(x, parents, len(kept))]
    expected = [oracle(torch.cat([history[kept], x[path(parents, row)]]))[-1] for row in range(len(parents))]
    return case(name, program, text, calls, torch.stack(expected))


def conv_cases() -> list[dict]:
    cases = []
    for channels, kernel in [(1, 2), (5, 3), (16, 3), (17, 4), (33, 5)]:
        for with_bias in (False, True):
            weight, bias = draw(channels, kernel), draw(channels) if with_bias else None
            text = Text(9, channels, kernel)
            state = text.state("conv", "short_conv", kernel - 1, channels)
            weights = [text.weight("w", weight)] + ([text.weight("b", bias)] if with_bias else [])
            y = text.op("short_conv", [text.x, text.gather], channels, weights, state)

            def oracle(sequence):
                padded = F.pad(sequence.T, (kernel - 1, 0))
                return F.conv1d(padded[None], weight[:, None], bias, groups=channels)[0].T

            name = f"short_conv{'_bias' if with_bias else ''}_{channels}x{kernel}"
            cases.append(state_case(name, text, text.finish(y, channels), pick(*TREES), oracle))
    return cases


def attention_cases() -> list[dict]:
    cases = []
    for heads, kv_heads, head_dim in [(1, 1, 1), (2, 1, 6), (4, 4, 8), (6, 2, 16), (3, 3, 5), (8, 2, 4)]:
        wide, narrow, scale = heads * head_dim, kv_heads * head_dim, head_dim**-0.5
        text = Text(9, wide + 2 * narrow)
        q, k, v = text.cut(0, wide), text.cut(wide, narrow), text.cut(wide + narrow, narrow)
        state = text.state("kv", "key_value", 32, narrow)
        text.op("kv_write", [k, v], 0, state=state)
        attributes = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "scale": scale}
        y = text.op("attention", [q, text.ancestors], wide, state=state, **attributes)

        def oracle(sequence):
            split = [part.unflatten(-1, (-1, head_dim)).transpose(0, 1) for part in sequence.split([wide, narrow, narrow], -1)]
            mixed = F.scaled_dot_product_attention(*split, is_causal=True, scale=scale, enable_gqa=True)
            return mixed.transpose(0, 1).flatten(-2)

        name = f"attention_{heads}of{kv_heads}x{head_dim}"
        cases.append(state_case(name, text, text.finish(y, wide), pick(*TREES), oracle))
    return cases


def head_cases() -> list[dict]:
    cases = []
    for channels, vocab, subrange in [(1, 1, 1), (7, 20, 8), (16, 33, 16), (5, 40, 2000)]:
        parents = pick(*TREES)
        x, weight = draw(len(parents), channels), draw(vocab, channels)
        weight[-1] = weight[0]  # a tie
        text = Text(len(parents), channels, head="argmax")
        ranges = -(-vocab // subrange)
        rows = text.op("gather_rows", [text.x, text.chosen], channels)
        text.op("head_argmax", [rows], ranges, [text.weight("w", weight)], subrange=subrange)
        logits = F.pad(x @ weight.T, (0, ranges * subrange - vocab), value=float("-inf")).unflatten(-1, (ranges, subrange))
        best = logits.max(-1).values
        index = (logits == best[..., None]).int().argmax(-1)  # the lowest of equals
        name = f"head_argmax_{vocab}by{subrange}"
        cases.append(case(name, text.finish(), text, [call(x, parents)], best, index))
    for channels in (1, 17):
        parents = TREES[2]
        x = draw(len(parents), channels)
        text = Text(len(parents), channels, selected=1)
        count = text.input("row_count", "i32", 1, 1)
        y = text.op("mean_pool", [text.x, count], channels, rows=1)
        program = text.finish(y, channels, rows=1)
        cases.append(case(f"mean_pool_{channels}", program, text, [call(x, parents)], x.mean(0, keepdim=True)))
    return cases


def main() -> None:
    families = [linear_cases, norm_cases, elementwise_cases, rope_cases, conv_cases, attention_cases, head_cases]
    cases = [found for family in families for found in family()]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text("[\n" + ",\n".join(json.dumps(item, separators=(",", ":")) for item in cases) + "\n]\n")


if __name__ == "__main__":
    main()

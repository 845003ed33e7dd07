"""Writes GGUF models of random weights: python -m espalier_tools.bench.random_model [NAME ...] (no NAME: lists them).

The shapes are real, the weights are noise of the usual size, and general.name says so: for measuring speed and nothing else.
Any engine that reads the architecture reads the file. Blocks come out of one pool of random ones, so a file is written as
fast as the disk takes it.
"""

import argparse
import math
import os
import pathlib
import random
import struct
import sys
from typing import BinaryIO, Callable, Iterator, NamedTuple

from espalier_tools.bench.install import cache_folder

ALIGNMENT = 32
POOL_BLOCKS = 1 << 16  # 1,024 different rows of 2,048


class Shape(NamedTuple):
    architecture: str
    label: str
    layers: int
    attention_layers: list[int]  # the others are short convolutions
    hidden: int = 2048
    inner: int = 10752
    heads: int = 32
    kv_heads: int = 8
    vocab: int = 128000
    context: int = 131072
    rope_base: float = 1e7


LFM2_ATTENTION = [2, 5, 9, 13, 17, 21, 24, 27]
TINY = {"hidden": 256, "inner": 512, "heads": 4, "kv_heads": 2, "vocab": 512, "context": 1024}
SHAPES = {
    "lfm2": Shape("lfm2", "LFM2.5-2.6B shape", 30, LFM2_ATTENTION),
    "llama": Shape("llama", "Llama of 2.7 B, widths of LFM2.5-2.6B", 32, list(range(32))),
    "tiny-lfm2": Shape("lfm2", "tiny LFM2", 3, [1], **TINY),
    "tiny-llama": Shape("llama", "tiny Llama", 2, [0, 1], **TINY),
}


class Encoding(NamedTuple):
    ggml_type: int
    elements: int
    block: Callable[[random.Random, float], bytes]  # of weights with that standard deviation


# A uniform integer of n values has the deviation n / sqrt(12); scales differ between blocks as trained ones do.
def half(draw: random.Random, deviation: float, integers: float) -> bytes:
    return struct.pack("<e", deviation / (integers / math.sqrt(12)) * draw.uniform(0.5, 1.5))


def q4_0_block(draw: random.Random, deviation: float) -> bytes:
    return half(draw, deviation, 16) + draw.randbytes(16)


def q8_0_block(draw: random.Random, deviation: float) -> bytes:
    return half(draw, deviation, 256) + draw.randbytes(32)


def q6_k_block(draw: random.Random, deviation: float) -> bytes:
    scales = bytes(draw.randint(32, 96) for _ in range(16))
    return draw.randbytes(192) + scales + half(draw, deviation / 64, 64)


F32 = Encoding(0, 1, lambda draw, deviation: struct.pack("<f", draw.gauss(0, deviation)))
Q4_0 = Encoding(2, 32, q4_0_block)
Q8_0 = Encoding(8, 32, q8_0_block)
Q6_K = Encoding(14, 256, q6_k_block)


class Recipe(NamedTuple):
    file_type: int  # general.file_type
    matrices: Encoding
    embedding: Encoding


RECIPES = {"q8_0": Recipe(7, Q8_0, Q8_0), "q4_0": Recipe(2, Q4_0, Q6_K)}  # as llama-quantize chooses them


class Tensor(NamedTuple):
    name: str
    rows: int  # 0: a vector
    columns: int
    encoding: Encoding
    ones: bool = False  # a norm

    def dimensions(self) -> list[int]:
        return [self.columns] + ([self.rows] if self.rows else [])

    def blocks(self) -> int:
        return max(self.rows, 1) * self.columns // self.encoding.elements


def layer_tensors(shape: Shape, layer: int, matrices: Encoding) -> Iterator[Tensor]:
    hidden, inner, head = shape.hidden, shape.inner, shape.hidden // shape.heads
    kv = head * shape.kv_heads

    def norm(name: str, size: int) -> Tensor:
        return Tensor(f"blk.{layer}.{name}.weight", 0, size, F32, ones=True)

    def matrix(name: str, rows: int, columns: int) -> Tensor:
        return Tensor(f"blk.{layer}.{name}.weight", rows, columns, matrices)

    yield norm("attn_norm", hidden)
    if layer in shape.attention_layers:
        yield from (matrix("attn_q", hidden, hidden), matrix("attn_k", kv, hidden), matrix("attn_v", kv, hidden))
        yield matrix("attn_output", hidden, hidden)
        if shape.architecture == "lfm2":
            yield from (norm("attn_q_norm", head), norm("attn_k_norm", head))
    else:
        yield from (matrix("shortconv.in_proj", 3 * hidden, hidden), matrix("shortconv.out_proj", hidden, hidden))
        yield Tensor(f"blk.{layer}.shortconv.conv.weight", hidden, 3, F32)
    yield norm("ffn_norm", hidden)
    yield from (matrix("ffn_gate", inner, hidden), matrix("ffn_up", inner, hidden), matrix("ffn_down", hidden, inner))


def model_tensors(shape: Shape, recipe: Recipe) -> list[Tensor]:
    last_norm = "token_embd_norm" if shape.architecture == "lfm2" else "output_norm"
    tensors = [Tensor("token_embd.weight", shape.vocab, shape.hidden, recipe.embedding)]
    tensors.append(Tensor(f"{last_norm}.weight", 0, shape.hidden, F32, ones=True))
    for layer in range(shape.layers):
        tensors += layer_tensors(shape, layer, recipe.matrices)
    return tensors


# ---- the file ------------------------------------------------------------------------------------------------------

U32, I32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


PACK = {U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<?"}


def scalar(kind: int, value) -> bytes:
    return text(value) if kind == STRING else struct.pack(PACK[kind], value)


def entry(key: str, kind: int, value) -> bytes:
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def array(key: str, kind: int, values: list) -> bytes:
    head = text(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
    return head + b"".join(scalar(kind, value) for value in values)


def byte_alphabet() -> list[str]:
    """GPT-2's characters of the 256 bytes."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte) for byte in visible] + [chr(256 + i) for i in range(len(hidden))]


def tokenizer_entries(vocab: int) -> list[bytes]:
    """Every byte, one merge so that there is a list of them, and names for the rest of the vocabulary."""
    normal, control, unused = 1, 3, 5
    real = byte_alphabet() + ["he"]
    tokens = real + ["<|startoftext|>", "<|im_end|>"]
    types = [normal] * len(real) + [control] * 2
    types += [unused] * (vocab - len(tokens))
    tokens += [f"<|unused_{i}|>" for i in range(len(tokens), vocab)]
    return [
        entry("tokenizer.ggml.model", STRING, "gpt2"),
        entry("tokenizer.ggml.pre", STRING, "llama-bpe"),
        array("tokenizer.ggml.tokens", STRING, tokens),
        array("tokenizer.ggml.token_type", I32, types),
        array("tokenizer.ggml.merges", STRING, ["h e"]),
        entry("tokenizer.ggml.bos_token_id", U32, len(real)),
        entry("tokenizer.ggml.eos_token_id", U32, len(real) + 1),
        entry("tokenizer.ggml.add_bos_token", BOOL, False),
    ]


def model_entries(shape: Shape, recipe: Recipe) -> list[bytes]:
    name, head = shape.architecture, shape.hidden // shape.heads
    entries = [
        entry("general.architecture", STRING, name),
        entry("general.name", STRING, f"random weights, {shape.label}"),
        entry("general.file_type", U32, recipe.file_type),
        entry(f"{name}.context_length", U32, shape.context),
        entry(f"{name}.embedding_length", U32, shape.hidden),
        entry(f"{name}.block_count", U32, shape.layers),
        entry(f"{name}.feed_forward_length", U32, shape.inner),
        entry(f"{name}.attention.head_count", U32, shape.heads),
        entry(f"{name}.attention.layer_norm_rms_epsilon", FLOAT, 1e-5),
        entry(f"{name}.rope.freq_base", FLOAT, shape.rope_base),
        entry(f"{name}.rope.dimension_count", U32, head),
        entry(f"{name}.vocab_size", U32, shape.vocab),
    ]
    if name == "lfm2":
        heads = [shape.kv_heads if layer in shape.attention_layers else 0 for layer in range(shape.layers)]
        entries += [entry("lfm2.shortconv.l_cache", U32, 3), array("lfm2.attention.head_count_kv", I32, heads)]
    else:
        entries.append(entry(f"{name}.attention.head_count_kv", U32, shape.kv_heads))
    return entries + tokenizer_entries(shape.vocab)


def padding(size: int) -> int:
    return -size % ALIGNMENT


def write_data(file: BinaryIO, tensor: Tensor, pool: bytes, draw: random.Random) -> None:
    if tensor.ones:
        file.write(struct.pack("<f", 1.0) * tensor.columns)
        return
    block_bytes = len(pool) // POOL_BLOCKS
    start, left = draw.randrange(POOL_BLOCKS) * block_bytes, tensor.blocks() * block_bytes
    while left:
        left -= file.write(memoryview(pool)[start : start + left])
        start = 0


def write_model(path: pathlib.Path, shape: Shape, recipe: Recipe) -> None:
    draw = random.Random(1)
    deviation = 1 / math.sqrt(shape.hidden)
    used = {F32, recipe.matrices, recipe.embedding}
    pools = {kind: b"".join(kind.block(draw, deviation) for _ in range(POOL_BLOCKS)) for kind in used}
    tensors, entries = model_tensors(shape, recipe), model_entries(shape, recipe)
    infos, offset = [], 0
    for tensor in tensors:
        sizes = tensor.dimensions()
        infos.append(text(tensor.name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes))
        infos.append(struct.pack("<IQ", tensor.encoding.ggml_type, offset))
        size = tensor.blocks() * (len(pools[tensor.encoding]) // POOL_BLOCKS)
        offset += size + padding(size)
    temporary = path.with_name(path.name + ".part")
    with open(temporary, "wb") as file:
        file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries)) + b"".join(entries + infos))
        for tensor in tensors:
            file.write(bytes(padding(file.tell())))
            write_data(file, tensor, pools[tensor.encoding], draw)
        file.write(bytes(padding(file.tell())))
    os.replace(temporary, path)


def model_names() -> list[str]:
    return [f"random-{shape}-{recipe}" for shape in SHAPES for recipe in RECIPES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *model_names()])
    parser.add_argument("--folder", type=pathlib.Path, default=cache_folder() / "models")
    options = parser.parse_args()
    if not options.names:
        print("\n".join(model_names()))
    for name in options.names:
        _, *shape, recipe = name.split("-")
        options.folder.mkdir(parents=True, exist_ok=True)
        path = options.folder / f"{name}.gguf"
        write_model(path, SHAPES["-".join(shape)], RECIPES[recipe])
        print(path, file=sys.stderr)


if __name__ == "__main__":
    main()

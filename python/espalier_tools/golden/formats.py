"""Files written by gguf-py, safetensors, transformers and MLX, with what these libraries read back from them.

encodings.gguf, encodings.safetensors   random blocks of every quantised type, and gguf-py's fp32 values of them
dtypes.safetensors                      a tensor of each dtype, and "<name>.fp32": torch's conversion
metadata.gguf, metadata.json            every type of metadata value
split/                                  a GGUF file in three parts
architectures/                          tiny models of each architecture in GGUF, under gguf-py's names; expected.json
                                        has transformers' names, shapes and configuration
checkpoint/                             a sharded model directory, as transformers saves it
affine/                                 a module of each affine encoding and type of scales, quantised by MLX; expected
                                        has its fp32 values ("<name>.fp32") and its products with "x" ("<name>.product")
"""

import json
import shutil

import gguf
import mlx.core as mx
import numpy
import safetensors.numpy
import safetensors.torch
import torch
import transformers
from gguf.quants import dequantize
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from espalier_tools.golden import GOLDEN

FOLDER = GOLDEN / "formats"
Type = gguf.GGMLQuantizationType

# Byte offsets of the half-precision scales in a block.
SCALES = {
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
    Type.IQ4_NL: [0],
}
ROWS = 8
COLUMNS = 512


def random_scales(rng: numpy.random.Generator, count: int) -> numpy.ndarray:
    """Halves of every kind but infinities and NaNs: usual ones, any bits, subnormal ones, the ends, both zeros."""
    any_bits = rng.integers(0, 0x7C00, count, dtype=numpy.uint16) | (rng.integers(0, 2, count, dtype=numpy.uint16) << 15)
    kinds = [
        rng.normal(0, 0.02, count).astype(numpy.float16).view(numpy.uint16),
        any_bits,
        any_bits & 0x83FF,
        rng.choice(numpy.array([0x0000, 0x8000, 0x0001, 0x8001, 0x7BFF, 0xFBFF, 0x03FF, 0x0400], numpy.uint16), count),
    ]
    return numpy.choose(rng.integers(0, len(kinds), count), kinds).astype(numpy.uint16)


def random_blocks(rng: numpy.random.Generator, kind: Type) -> numpy.ndarray:
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    count = ROWS * COLUMNS // elements
    blocks = rng.integers(0, 256, (count, size), dtype=numpy.uint8)
    blocks[0] = 0
    blocks[1] = 255
    for offset in SCALES[kind]:
        blocks[:, offset : offset + 2] = random_scales(rng, count).view(numpy.uint8).reshape(count, 2)
    return blocks.reshape(ROWS, -1)


def write_gguf(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_encodings(rng: numpy.random.Generator) -> None:
    writer = gguf.GGUFWriter(FOLDER / "encodings.gguf", "none")
    expected = {}
    for kind in SCALES:
        blocks = random_blocks(rng, kind)
        writer.add_tensor(kind.name, blocks, raw_dtype=kind)
        expected[kind.name] = dequantize(blocks, kind)
    numbers = rng.normal(0, 100, (3, 5))
    bfloats = numbers.astype(numpy.float32).view(numpy.uint16)[:, 1::2].copy()
    writer.add_tensor("BF16", bfloats.view(numpy.uint8), raw_dtype=Type.BF16)
    expected["BF16"] = dequantize(bfloats.view(numpy.uint8), Type.BF16)
    for dtype in ("float64", "float32", "float16", "int64", "int32", "int16", "int8"):
        writer.add_tensor(dtype, numbers.astype(dtype))
        expected[dtype] = numbers.astype(dtype).astype(numpy.float32)
    write_gguf(writer)
    safetensors.numpy.save_file(expected, FOLDER / "encodings.safetensors")


def write_dtypes(rng: numpy.random.Generator) -> None:
    numbers = torch.from_numpy(rng.normal(0, 60, (3, 5)))
    floats = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
    integers = ["int64", "int32", "int16", "int8", "uint32", "uint16", "uint8", "bool"]
    tensors = {name: numbers.to(getattr(torch, name)) for name in floats}
    tensors |= {name: numbers.abs().to(torch.int64).to(getattr(torch, name)) for name in integers}
    tensors["every_float8_e4m3fn"] = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn)
    tensors["every_float8_e5m2"] = torch.arange(256).to(torch.uint8).view(torch.float8_e5m2)
    tensors["scalar"] = torch.tensor(-1.5)
    tensors["empty"] = torch.zeros(0, 4)
    tensors |= {f"{name}.fp32": tensor.to(torch.float32).clone() for name, tensor in tensors.items()}
    safetensors.torch.save_file(tensors, FOLDER / "dtypes.safetensors", metadata={"format": "pt", "name": "größe"})


def write_metadata() -> None:
    values = {
        "a.uint8": (255, gguf.GGUFValueType.UINT8),
        "a.int8": (-128, gguf.GGUFValueType.INT8),
        "a.uint16": (65535, gguf.GGUFValueType.UINT16),
        "a.int16": (-32768, gguf.GGUFValueType.INT16),
        "a.uint32": (4294967295, gguf.GGUFValueType.UINT32),
        "a.int32": (-2147483648, gguf.GGUFValueType.INT32),
        "a.uint64": (9223372036854775807, gguf.GGUFValueType.UINT64),
        "a.int64": (-9223372036854775808, gguf.GGUFValueType.INT64),
        "a.float32": (0.15625, gguf.GGUFValueType.FLOAT32),
        "a.float64": (0.1, gguf.GGUFValueType.FLOAT64),
        "a.string": ("größer als 文字 🦙", gguf.GGUFValueType.STRING),
        "an.empty string": ("", gguf.GGUFValueType.STRING),
        "a.true": (True, gguf.GGUFValueType.BOOL),
        "a.false": (False, gguf.GGUFValueType.BOOL),
        "array.strings": (["a", "", "Ġthe", "日本"], gguf.GGUFValueType.ARRAY),
        "array.integers": ([3, -1, 4, -1, 5], gguf.GGUFValueType.ARRAY),
        "array.floats": ([0.5, -0.25, 1e10], gguf.GGUFValueType.ARRAY),
        "array.bools": ([True, False, True], gguf.GGUFValueType.ARRAY),
        "array.nested": ([[1, 2], [3], [4, 5, 6]], gguf.GGUFValueType.ARRAY),
    }
    writer = gguf.GGUFWriter(FOLDER / "metadata.gguf", "none")
    for key, (value, kind) in values.items():
        writer.add_key_value(key, value, kind)
    writer.add_custom_alignment(64)
    writer.add_tensor("one", numpy.array([1, 2, 3], numpy.float32))
    writer.add_tensor("two", numpy.array([[4, 5]], numpy.float32))
    write_gguf(writer)
    text = json.dumps({key: value for key, (value, _) in values.items()}, ensure_ascii=False, indent=1)
    (FOLDER / "metadata.json").write_text(text + "\n")


def write_split() -> None:
    (FOLDER / "split").mkdir()
    writer = gguf.GGUFWriter(FOLDER / "split/tiny.gguf", "none", split_max_tensors=2)
    for index in range(5):
        writer.add_tensor(f"tensor {index}", numpy.full((2, 3), index, numpy.float32))
    write_gguf(writer)


TINY = {
    "vocab_size": 12,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
}
MODELS = {
    "llama": transformers.LlamaConfig(**TINY, rms_norm_eps=1e-5, tie_word_embeddings=False),
    "qwen2": transformers.Qwen2Config(**TINY, rms_norm_eps=1e-6, tie_word_embeddings=True),
    "qwen3": transformers.Qwen3Config(**TINY, head_dim=8, rms_norm_eps=1e-6, tie_word_embeddings=False),
    "lfm2": transformers.Lfm2Config(
        **TINY, norm_eps=1e-5, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False, conv_bias=False
    ),
}


def write_model(name: str, config: transformers.PretrainedConfig) -> dict:
    """A GGUF file as the converter of llama.cpp writes it; returns what transformers calls its contents."""
    architecture = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == name)
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    path = FOLDER / f"architectures/{name}.gguf"
    writer = gguf.GGUFWriter(path, name)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_layer_norm_rms_eps(config.norm_eps if name == "lfm2" else config.rms_norm_eps)
    writer.add_rope_freq_base(1e6)
    writer.add_vocab_size(config.vocab_size)
    heads = config.num_key_value_heads
    if name == "lfm2":
        writer.add_head_count_kv([heads if kind == "full_attention" else 0 for kind in config.layer_types])
        writer.add_shortconv_l_cache(config.conv_L_cache)
    else:
        writer.add_head_count_kv(heads)
        writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    if name == "qwen3":
        writer.add_key_length(config.head_dim)
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config)
    tensors = {}
    for key, tensor in model.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        gguf_name = names.get_name(key, try_suffixes=(".weight", ".bias"))
        tensors[key] = {"gguf": gguf_name, "shape": list(tensor.shape)}
        writer.add_tensor(gguf_name, tensor.float().numpy().squeeze() if ".conv.conv." in key else tensor.float().numpy())
    write_gguf(writer)
    read_back = load_gguf_checkpoint(str(path))["config"]
    keys = ["model_type", *TINY, "rms_norm_eps"] + (["conv_L_cache"] if name == "lfm2" else [])
    expected = {key: read_back[key] for key in keys}
    return {"config": expected, "tensors": tensors}


def write_architectures() -> None:
    (FOLDER / "architectures").mkdir()
    expected = {name: write_model(name, config) for name, config in MODELS.items()}
    (FOLDER / "architectures/expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def write_checkpoint() -> None:
    torch.manual_seed(8)
    model = transformers.LlamaForCausalLM(MODELS["llama"]).to(torch.bfloat16)
    model.save_pretrained(FOLDER / "checkpoint", max_shard_size="2KB")
    rows = {name: tensor.float().reshape(-1)[:4].tolist() for name, tensor in model.state_dict().items()}
    (FOLDER / "checkpoint/expected.json").write_text(json.dumps(rows, indent=1) + "\n")


AFFINE_ROWS = 3
AFFINE_COLUMNS = 256


def write_affine(rng: numpy.random.Generator) -> None:
    x = mx.array(rng.normal(0, 1, (2, AFFINE_COLUMNS)).astype(numpy.float32))
    settings, stored, expected = {"group_size": 64, "bits": 4, "mode": "affine"}, {}, {"x": x}
    for bits in (4, 8):
        for group_size in (32, 64, 128):
            for dtype in (mx.float16, mx.bfloat16, mx.float32):
                name = f"{bits} bits, groups of {group_size}, {str(dtype).split('.')[-1]}"
                weights = mx.array(rng.normal(0, 0.05, (AFFINE_ROWS, AFFINE_COLUMNS)).astype(numpy.float32))
                words, *scales = mx.quantize(weights.astype(dtype), group_size, bits)
                stored |= {f"{name}.{part}": array for part, array in zip(("weight", "scales", "biases"), (words, *scales))}
                settings[name] = {"group_size": group_size, "bits": bits, "mode": "affine"}
                wide = [array.astype(mx.float32) for array in scales]
                expected[f"{name}.fp32"] = mx.dequantize(words, *wide, group_size, bits)
                expected[f"{name}.product"] = mx.quantized_matmul(x, words, *wide, True, group_size, bits)
    folder = FOLDER / "affine"
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), stored, metadata={"format": "mlx"})
    mx.save_safetensors(str(folder / "expected.safetensors"), expected)
    text = json.dumps({"model_type": "none", "quantization": settings, "quantization_config": settings}, indent=1)
    (folder / "config.json").write_text(text + "\n")


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    rng = numpy.random.default_rng(20)
    write_encodings(rng)
    write_dtypes(rng)
    write_metadata()
    write_split()
    write_architectures()
    write_checkpoint()
    write_affine(rng)


if __name__ == "__main__":
    main()

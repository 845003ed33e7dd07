"""Golden models: tiny checkpoints with random weights and what transformers computes with them.

Writes tests/golden/models/<name>/{config.json, model.safetensors, golden.json}, one directory a case of CASES. golden.json
holds token sequences with the log-probability that transformers (fp32, eager attention, no cache) gives to each id after the
first, and the id that it finds most probable at each place. Weights are stored as fp16 or bf16, or quantised by mlx-lm
(MLX_CASES), and both sides compute with the stored values. Configurations are read back through transformers' own loader, so that the older forms of config.json
(LEGACY) are checked too.

Run from python/:  python -m espalier_tools.golden.models
With --random N --seed S --out DIR: N more models of random shapes into DIR, for
    ESPALIER_GOLDEN_MODELS=DIR model_golden_test
"""

import argparse
import json
import pathlib
import random
import shutil

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

from espalier_tools.golden import GOLDEN, mlx_checkpoint

VOCAB = 131

# Shapes shared by the committed cases; small, because the files are committed.
SMALL = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}

LLAMA3_SCALING = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}
YARN_SCALING = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}


def lfm2(kinds: str, **changes) -> dict:
    """A configuration with a layer for each letter: c is a convolution, a is attention."""
    layer_types = ["conv" if kind == "c" else "full_attention" for kind in kinds]
    return SMALL | {
        "model_type": "lfm2",
        "num_hidden_layers": len(kinds),
        "layer_types": layer_types,
        "block_auto_adjust_ff_dim": False,
        "block_ff_dim": SMALL["intermediate_size"],
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
    } | changes


def llama(**changes) -> dict:
    return SMALL | {"model_type": "llama", "tie_word_embeddings": False} | changes


# name: (dtype of the stored weights, configuration)
CASES = {
    "llama_tied": ("float16", llama(tie_word_embeddings=True, rms_norm_eps=1e-5)),
    "llama_llama3_scaling": ("bfloat16", llama(rope_parameters=LLAMA3_SCALING)),
    "llama_biases": ("float16", llama(attention_bias=True, mlp_bias=True, num_key_value_heads=4, head_dim=6)),
    "llama_legacy_linear": (
        "float16",
        llama(rope_theta=20000.0, rope_scaling={"type": "linear", "factor": 3.0}, num_key_value_heads=1),
    ),
    "llama_yarn": ("bfloat16", llama(rope_parameters=YARN_SCALING)),
    "llama_longrope": (
        "float16",
        llama(
            rope_parameters={
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "short_factor": [1.0, 1.1, 1.5, 2.0],
                "long_factor": [1.0, 2.0, 4.0, 8.0],
                "original_max_position_embeddings": 256,
            }
        ),
    ),
    "llama_dynamic": ("float16", llama(rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0})),
    "mistral": ("bfloat16", SMALL | {"model_type": "mistral", "sliding_window": None, "head_dim": 12}),
    "qwen2": ("float16", SMALL | {"model_type": "qwen2", "tie_word_embeddings": True}),
    "qwen3": ("bfloat16", SMALL | {"model_type": "qwen3", "head_dim": 16, "rope_parameters": {"rope_theta": 1e6}}),
    "lfm2_mixed": ("bfloat16", lfm2("ccac")),
    "lfm2_attention_first": ("float16", lfm2("acc", num_key_value_heads=4, tie_word_embeddings=False)),
    "lfm2_attention_last": ("float16", lfm2("cca", conv_bias=True, num_key_value_heads=1)),
    "lfm2_all_convolution": ("bfloat16", lfm2("ccc", conv_L_cache=4, norm_eps=1e-3)),
    "lfm2_all_attention": ("float16", lfm2("aa", rope_parameters={"rope_type": "default", "rope_theta": 300.0})),
    "lfm2_legacy": ("float16", lfm2("cacc", block_ff_dim=66, block_auto_adjust_ff_dim=True, block_multiple_of=8)),
    "llama_partial_rotary": (
        "float16",
        llama(rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}),
    ),
}

# Rows of 64 and of 96: mlx-lm leaves alone what is no multiple of the group.
WIDE = {"hidden_size": 64, "intermediate_size": 96}

# name: (dtype of the scales, configuration, arguments of mlx_checkpoint.quantise)
MLX_CASES = {
    "mlx_llama_4bit": (
        "float16",
        llama(**WIDE),
        {
            "group_size": 32,
            "bits": 4,
            "modules": {"v_proj": {"group_size": 64, "bits": 8, "mode": "affine"}, "0.mlp.up_proj": False},
        },
    ),
    "mlx_qwen2_8bit": (
        "float32",
        SMALL | WIDE | {"model_type": "qwen2", "tie_word_embeddings": True},
        {"group_size": 64, "bits": 8, "modules": {}},
    ),
    "mlx_lfm2_4bit": (
        "bfloat16",
        lfm2("ca", hidden_size=64, block_dim=64, block_ff_dim=128),  # mlx-lm wants block_dim
        {"group_size": 64, "bits": 4, "modules": {"w2": {"group_size": 128, "bits": 8, "mode": "affine"}}},
    ),
}

# Cases whose config.json is rewritten to the keys of older exports.
LEGACY = {"lfm2_legacy", "llama_legacy_linear"}


def randomise(model: torch.nn.Module, generator: torch.Generator) -> None:
    """Weights that make every part of the model matter: activations of order 1, logits that spread."""
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        if name.endswith("bias"):
            values *= 0.3
        elif name.endswith("conv.weight"):
            values *= 0.6
        elif parameter.ndim == 1:
            values = 1 + 0.3 * values
        elif "embed_tokens" in name:
            values *= 0.7
        else:
            values *= 1.3 / parameter.shape[1] ** 0.5
        parameter.data.copy_(values)


def legacy_config(config: dict) -> dict:
    """As exports wrote it before 2026: flat theta, rope_scaling with "type"; LFM2: indices of the attention layers."""
    config = dict(config)
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    rope_type = rope.pop("rope_type")
    config["rope_scaling"] = None if rope_type == "default" else rope | {"type": rope_type}
    if config["model_type"] == "lfm2":
        kinds = config.pop("layer_types")
        config["full_attn_idxs"] = [index for index, kind in enumerate(kinds) if kind == "full_attention"]
        config["tie_embedding"] = config.pop("tie_word_embeddings")
    return config


def save_checkpoint(directory: pathlib.Path, settings: dict, dtype: str, legacy: bool, seed: int) -> None:
    settings = dict(settings)
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    model = AutoModelForCausalLM.from_config(config)
    generator = torch.Generator().manual_seed(seed)
    randomise(model, generator)
    tensors = {name: value.to(getattr(torch, dtype)).contiguous() for name, value in model.state_dict().items()}
    if config.tie_word_embeddings:
        tensors.pop("lm_head.weight")
    written = json.loads(config.to_json_string(use_diff=True))
    written.pop("transformers_version", None)
    if legacy:
        written = legacy_config(written)
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def score(model: torch.nn.Module, ids: list[int]) -> dict:
    """Log-probability of each id after the first, and the most probable id at each place."""
    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0]
    logprobs = torch.log_softmax(logits.double(), -1)
    places = range(len(ids) - 1)
    return {
        "ids": ids,
        "logprobs": [round(logprobs[i, ids[i + 1]].item(), 7) for i in places],
        "top1_ids": logprobs.argmax(-1).tolist(),
    }


def write_case(
    directory: pathlib.Path, settings: dict, dtype: str, legacy: bool, lengths: list[int], seed: int
) -> None:
    save_checkpoint(directory, settings, dtype, legacy, seed)
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
    write_scores(directory, model, settings["vocab_size"], lengths, seed)


def write_mlx_case(directory: pathlib.Path, settings: dict, dtype: str, quantisation: dict, seed: int) -> None:
    save_checkpoint(directory, settings, dtype, False, seed)
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
    mlx_checkpoint.quantise(directory, **quantisation)
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}  # MLX's convolutions have others
    tensors = {name: tensor.reshape(shapes[name]) for name, tensor in mlx_checkpoint.dequantised(directory).items()}
    if settings.get("tie_word_embeddings", True):
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    model.load_state_dict(tensors)
    write_scores(directory, model, settings["vocab_size"], [1, 2, 9, 70], seed)


def write_scores(
    directory: pathlib.Path, model: torch.nn.Module, vocab: int, lengths: list[int], seed: int
) -> None:
    model.eval()
    draw = random.Random(seed)
    sequences = [score(model, [draw.randrange(vocab) for _ in range(length)]) for length in lengths]
    (directory / "golden.json").write_text(json.dumps({"sequences": sequences}, separators=(",", ":")) + "\n")


def random_shape(draw: random.Random) -> dict:
    """A configuration with any mix of the family's options."""
    heads = draw.choice([1, 2, 3, 4, 6, 8])
    kv_heads = draw.choice([n for n in range(1, heads + 1) if heads % n == 0])
    head_dim = draw.choice([2, 4, 8, 10, 16, 32])
    layers = draw.randint(1, 6)
    shape = SMALL | {
        "vocab_size": draw.choice([64, 100, VOCAB, 4001]),
        "hidden_size": heads * head_dim,
        "intermediate_size": draw.choice([8, 24, 56, 100, 256]),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "tie_word_embeddings": draw.random() < 0.5,
    }
    theta = {"rope_type": "default", "rope_theta": draw.choice([100.0, 1e4, 1e6, 1e7])}
    family = draw.choice(["llama", "mistral", "qwen2", "qwen3", "lfm2", "lfm2", "lfm2"])
    if family == "lfm2":
        kinds = "".join(draw.choice("ca") for _ in range(layers))
        return lfm2(kinds) | shape | {
            "conv_bias": draw.random() < 0.5,
            "conv_L_cache": draw.choice([2, 3, 3, 3, 4, 5]),
            "block_ff_dim": shape["intermediate_size"],
            "block_auto_adjust_ff_dim": draw.random() < 0.5,
            "block_multiple_of": draw.choice([1, 8, 32]),
            "rope_parameters": theta,
        }
    scaling = draw.choice([theta, theta, LLAMA3_SCALING, YARN_SCALING])
    options = {"llama": {"attention_bias": draw.random() < 0.5, "mlp_bias": draw.random() < 0.5}}
    wide = {"head_dim": head_dim * draw.choice([1, 2])} if family != "qwen2" else {}
    sliding = {"sliding_window": None} if family == "mistral" else {}
    return shape | {"model_type": family, "rope_parameters": scaling} | options.get(family, {}) | wide | sliding


def write_random(out: pathlib.Path, count: int, seed: int) -> None:
    draw = random.Random(seed)
    for index in range(count):
        settings = random_shape(draw)
        lengths = sorted(draw.randint(1, 300) for _ in range(3))
        directory = out / f"{index:04}_{settings['model_type']}"
        dtype = draw.choice(["float16", "bfloat16", "float32"])
        write_case(directory, settings, dtype, False, lengths, draw.randrange(1 << 30))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, help="number of further models of random shapes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.random:
        write_random(arguments.out, arguments.random, arguments.seed)
        return
    shutil.rmtree(GOLDEN / "models", ignore_errors=True)
    for number, (name, (dtype, settings)) in enumerate(CASES.items()):
        write_case(GOLDEN / "models" / name, settings, dtype, name in LEGACY, [1, 2, 9, 70], seed=number)
    for number, (name, (dtype, settings, quantisation)) in enumerate(MLX_CASES.items()):
        write_mlx_case(GOLDEN / "models" / name, settings, dtype, quantisation, seed=100 + number)


if __name__ == "__main__":
    main()

"""nano as a model directory: 8-bit weights in MLX's form, config.json of LFM2, tokenizer and chat template."""

import hashlib
import pathlib

import torch
from transformers import PreTrainedTokenizerFast

from espalier_tools.train import quantise
from espalier_tools.train.files import write_json
from espalier_tools.train.network import Network, Shape


def config(shape: Shape, tokenizer: PreTrainedTokenizerFast) -> dict:
    """The keys that transformers' Lfm2Config reads."""
    return {
        "architectures": ["Lfm2ForCausalLM"],
        "model_type": "lfm2",
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "block_ff_dim": shape.intermediate,
        "block_auto_adjust_ff_dim": False,
        "num_hidden_layers": len(shape.layer_types),
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "layer_types": list(shape.layer_types),
        "full_attn_idxs": [i for i, kind in enumerate(shape.layer_types) if kind == "full_attention"],
        "conv_L_cache": shape.conv_taps,
        "conv_bias": False,
        "norm_eps": shape.norm_eps,
        "rope_theta": shape.rope_theta,
        "rope_parameters": {"rope_theta": shape.rope_theta, "rope_type": "default"},
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
        "tie_embedding": True,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "torch_dtype": "bfloat16",
    }


def tensors(network: Network) -> dict[str, torch.Tensor]:
    """Under the names of MLX's LFM2, whose depthwise weights are [channels, kernel, 1]."""
    named = {f"model.{name}": value.detach().float() for name, value in network.state_dict().items()}
    return {name: value.transpose(1, 2) if value.dim() == 3 else value for name, value in named.items()}


def save(network: Network, tokenizer: PreTrainedTokenizerFast, folder: pathlib.Path) -> None:
    tokenizer.save_pretrained(folder)
    quantise.save_checkpoint(folder, tensors(network), config(network.shape, tokenizer))
    eos = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|endoftext|>")]
    write_json(folder / "generation_config.json", {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": eos})


def digest(folder: pathlib.Path) -> str:
    """SHA-256 of the weights' file."""
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def load(folder: pathlib.Path) -> tuple[Network, PreTrainedTokenizerFast]:
    """What `save` wrote, in fp32: the very weights that an engine computes with. ValueError for another model."""
    from transformers import AutoTokenizer, Lfm2Config

    stored, keys = quantise.load_checkpoint(folder)
    if keys.get("model_type") != "lfm2":
        raise ValueError(f"{folder}/config.json: model_type is {keys.get('model_type')!r}, expected 'lfm2'")
    network = Network(Shape.from_transformers(Lfm2Config(**keys)))
    state = {name.removeprefix("model."): value for name, value in stored.items()}
    network.load_state_dict({k: v.transpose(1, 2) if v.dim() == 3 else v for k, v in state.items()})
    return network.requires_grad_(False).eval(), AutoTokenizer.from_pretrained(folder)

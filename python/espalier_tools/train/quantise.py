"""Weights in 8 bits as MLX keeps them: groups of 64 along a row, w = scale * q + bias, scales and biases bf16.

1.0625 bytes a weight. Written and read without MLX, so that a checkpoint shipped with the repository needs torch alone;
tests compare both ways with MLX itself. A module X becomes X.weight (uint32: four values a word, lowest byte first),
X.scales and X.biases; what is not two-dimensional, or not of whole groups, stays as it is, in bf16.
"""

import json
import pathlib

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from espalier_tools.train.files import write_json, write_whole

GROUP = 64
SETTINGS = {"group_size": GROUP, "bits": 8, "mode": "affine"}


def quantise(weight: Tensor) -> dict[str, Tensor]:
    """[rows, columns] fp32 -> weight, scales, biases. Each group's ends are met as well as bf16 allows."""
    groups = weight.float().unflatten(1, (-1, GROUP))
    low, high = groups.amin(-1), groups.amax(-1)
    scales = ((high - low) / 255).clamp_min(1e-8).bfloat16()
    biases = low.bfloat16()
    values = ((groups - biases.float().unsqueeze(-1)) / scales.float().unsqueeze(-1)).round().clamp(0, 255)
    words = values.to(torch.uint8).flatten(1).contiguous().view(torch.int32).view(torch.uint32)
    return {"weight": words, "scales": scales, "biases": biases}


def dequantise(parts: dict[str, Tensor]) -> Tensor:
    """[rows, columns] fp32."""
    values = parts["weight"].view(torch.uint8).float().unflatten(1, (-1, GROUP))
    return (values * parts["scales"].float().unsqueeze(-1) + parts["biases"].float().unsqueeze(-1)).flatten(1)


def quantised(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """All tensors of a checkpoint, matrices in 8 bits, others bf16 (integers as they are)."""
    result = {}
    for name, tensor in tensors.items():
        if tensor.dim() == 2 and tensor.shape[1] % GROUP == 0 and tensor.shape[0] > 1 and name.endswith(".weight"):
            module = name.removesuffix(".weight")
            result |= {f"{module}.{part}": value for part, value in quantise(tensor).items()}
        else:
            result[name] = tensor.bfloat16() if tensor.is_floating_point() else tensor
    return {name: tensor.contiguous() for name, tensor in result.items()}


def dequantised(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The checkpoint as fp32 under its unquantised names."""
    result = {}
    for name, tensor in tensors.items():
        module, _, part = name.rpartition(".")
        grouped = f"{module}.scales" in tensors
        if grouped and part == "weight":
            result[name] = dequantise({kind: tensors[f"{module}.{kind}"] for kind in ("weight", "scales", "biases")})
        elif not grouped or part not in ("scales", "biases"):
            result[name] = tensor.float() if tensor.is_floating_point() else tensor
    return result


def save_checkpoint(folder: pathlib.Path, tensors: dict[str, Tensor], config: dict) -> None:
    """model.safetensors in 8 bits and config.json that says so."""
    content = save(quantised(tensors), metadata={"format": "mlx"})
    write_whole(folder / "model.safetensors", lambda file: file.write(content))
    write_json(folder / "config.json", {**config, "quantization": SETTINGS, "quantization_config": SETTINGS})


def load_checkpoint(folder: pathlib.Path) -> tuple[dict[str, Tensor], dict]:
    """fp32 tensors and config of a folder, quantised as above or not. ValueError for what is no such folder."""
    try:
        config = json.loads((folder / "config.json").read_text())
        stored = load_file(folder / "model.safetensors")
    except (OSError, SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{folder}: expected a model's folder with config.json and model.safetensors: {error}") from error
    settings = config.get("quantization")
    if settings not in (None, SETTINGS):
        raise ValueError(f"{folder}/config.json: quantization is {settings}, expected {SETTINGS} or none")
    return dequantised(stored), config

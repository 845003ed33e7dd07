"""Checkpoints as MLX quantises them: written by mlx-lm, and read back as fp32 by MLX's own dequantize."""

import json
import pathlib
import shutil
import tempfile

import mlx.core as mx
import numpy
import torch
from mlx_lm.utils import load_model, quantize_model, save_config, save_model


def quantise(directory: pathlib.Path, group_size: int, bits: int, modules: dict[str, object]) -> None:
    """Replaces a checkpoint by what `mlx_lm.convert -q` makes of it; `modules`: of names that end so, other settings."""
    model, config = load_model(directory)

    def settings(path: str, _module: object) -> object:
        found = [value for end, value in modules.items() if path.endswith(end)]
        return found[0] if found else True

    model, config = quantize_model(model, config, group_size, bits, quant_predicate=settings)
    with tempfile.TemporaryDirectory() as folder:
        written = pathlib.Path(folder)
        save_model(written, model)
        save_config(config, written / "config.json")
        for name in ("config.json", "model.safetensors"):
            (directory / name).unlink()  # the old file may be mapped
            shutil.copyfile(written / name, directory / name)


def to_torch(array: mx.array) -> torch.Tensor:
    return torch.from_numpy(numpy.array(array.astype(mx.float32)))


def dequantised(directory: pathlib.Path) -> dict[str, torch.Tensor]:
    """All tensors of a checkpoint as fp32. Scales are widened first, so that nothing is rounded to them."""
    settings = json.loads((directory / "config.json").read_text())["quantization"]
    stored = mx.load(str(directory / "model.safetensors"))
    tensors = {}
    for name, array in stored.items():
        module, _, kind = name.rpartition(".")
        if f"{module}.scales" not in stored or kind == "bias":
            tensors[name] = to_torch(array)
        elif kind == "weight":
            own = settings.get(module, settings)
            scales, biases = (stored[f"{module}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
            tensors[name] = to_torch(mx.dequantize(array, scales, biases, own["group_size"], own["bits"]))
    return tensors

"""8-bit groups against MLX, both ways."""

import json

import mlx.core as mx
import numpy as np
import pytest
import torch

from espalier_tools.train import quantise


def test_mlx_reads_what_we_write():
    torch.manual_seed(1)
    weight = torch.randn(96, 256) * torch.rand(96, 1)
    parts = quantise.quantise(weight)
    scales, biases = (mx.array(parts[name].float().numpy()) for name in ("scales", "biases"))
    theirs = np.array(mx.dequantize(mx.array(parts["weight"].numpy()), scales, biases, 64, 8))
    assert torch.equal(quantise.dequantise(parts), torch.from_numpy(theirs))


def test_we_read_what_mlx_writes():
    torch.manual_seed(2)
    weight = torch.randn(32, 192)
    words, scales, biases = mx.quantize(mx.array(weight.numpy()).astype(mx.bfloat16), 64, 8)
    wide = [np.array(x.astype(mx.float32)) for x in (scales, biases)]
    parts = {"weight": torch.from_numpy(np.array(words)), "scales": torch.from_numpy(wide[0]), "biases": torch.from_numpy(wide[1])}
    theirs = np.array(mx.dequantize(words, mx.array(wide[0]), mx.array(wide[1]), 64, 8))
    assert torch.equal(quantise.dequantise(parts), torch.from_numpy(theirs))


def test_error_is_at_most_a_step():
    """Half a step of rounding, and what bf16 takes from a group's scale (255 times) and its least value."""
    torch.manual_seed(3)
    weight = torch.randn(64, 128)
    groups = weight.unflatten(1, (-1, 64))
    step = (groups.amax(-1) - groups.amin(-1)) / 255
    bound = 0.5 * step + 2**-8 * (255 * step + groups.amin(-1).abs())
    error = (quantise.dequantise(quantise.quantise(weight)) - weight).abs().unflatten(1, (-1, 64)).amax(-1)
    assert (error <= bound).all()


def test_a_checkpoint_comes_back(tmp_path):
    torch.manual_seed(4)
    tensors = {"a.weight": torch.randn(8, 64), "b.weight": torch.randn(8, 3), "n.weight": torch.ones(64), "d2t": torch.arange(5)}
    quantise.save_checkpoint(tmp_path, tensors, {"x": 1})
    found, config = quantise.load_checkpoint(tmp_path)
    assert found.keys() == tensors.keys() and config["quantization"]["bits"] == 8
    assert torch.equal(found["d2t"], tensors["d2t"])
    assert all(torch.allclose(found[name], tensors[name].float(), atol=0.03) for name in tensors if name != "d2t")


def test_a_bias_beside_8_bit_weights_stays():
    tensors = {"a.weight": torch.randn(8, 64), "a.bias": torch.ones(8)}
    found = quantise.dequantised(quantise.quantised(tensors))
    assert found.keys() == tensors.keys() and torch.equal(found["a.bias"], tensors["a.bias"])


def test_a_folder_that_is_no_checkpoint_is_named(tmp_path):
    with pytest.raises(ValueError, match="expected a model's folder .*config.json"):
        quantise.load_checkpoint(tmp_path)
    quantise.save_checkpoint(tmp_path, {"n.weight": torch.ones(64)}, {})
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="expected a model's folder"):
        quantise.load_checkpoint(tmp_path)
    quantise.save_checkpoint(tmp_path, {"n.weight": torch.ones(64)}, {})
    (tmp_path / "config.json").write_text(json.dumps({"quantization": {"group_size": 32, "bits": 4}}))
    with pytest.raises(ValueError, match="'bits': 4.*, expected .*'bits': 8"):
        quantise.load_checkpoint(tmp_path)

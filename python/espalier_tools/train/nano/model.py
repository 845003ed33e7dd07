"""nano's network: its shape, and weights to begin with that make copying easy to learn."""

import torch
from torch import nn

from espalier_tools.train.network import Network, Shape

SHAPE = Shape(
    architecture="lfm2",
    vocab=4096,
    hidden=256,
    intermediate=640,
    heads=4,
    kv_heads=2,
    head_dim=64,
    layer_types=("conv", "full_attention") * 4,
    rope_theta=10000.0,
)
EMBEDDING_STD = 0.05
QK_GAIN = 1.5
ALIKE = 0.7  # share of a query's weights that is the key's, of an output's that is the value's transposed


@torch.no_grad()
def initialise(network: Network, seed: int) -> None:
    """Random weights; queries look for their own likeness and outputs return what values took in.

    So a head copies what it finds from the first step on, and convolutions, which let a row know the row before,
    make it look for what followed: copying a value from a request needs just that.
    """
    random = torch.Generator().manual_seed(seed)
    shape = network.shape
    for name, parameter in network.named_parameters():
        if parameter.dim() == 2:
            std = EMBEDDING_STD if "embed" in name else parameter.shape[1] ** -0.5
            if name.endswith(("out_proj.weight", "w2.weight")):
                std /= (2 * len(shape.layer_types)) ** 0.5
            parameter.normal_(0, std, generator=random)
        elif parameter.dim() == 3:
            parameter.uniform_(-0.5, 0.5, generator=random)
    for layer in network.layers:
        if hasattr(layer, "self_attn"):
            _align(layer.self_attn, shape)


def _align(attention: nn.Module, shape: Shape) -> None:
    groups = shape.heads // shape.kv_heads
    keys, values = (
        x.weight.unflatten(0, (shape.kv_heads, shape.head_dim)).repeat_interleave(groups, dim=0).flatten(0, 1)
        for x in (attention.k_proj, attention.v_proj)
    )
    attention.q_proj.weight.mul_((1 - ALIKE**2) ** 0.5).add_(keys, alpha=ALIKE)
    std = attention.out_proj.weight.std()
    attention.out_proj.weight.mul_((1 - ALIKE**2) ** 0.5).add_(values.T * (std / values.std()), alpha=ALIKE)
    attention.q_layernorm.weight.fill_(QK_GAIN)
    attention.k_layernorm.weight.fill_(QK_GAIN)

"""Llama and LFM2 networks in torch, small and fast on CPU cores: for training and for batches of generated text.

The parameters have the names of transformers' checkpoints, so that weights pass both ways. Residual stream, norms and
rotary embedding are fp32; matrix products are bf16 where `products` says so (five times the speed of fp32 on CPUs with
AVX-512 BF16) or fp32, the form that tests compare with transformers.
"""

import dataclasses
import functools

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclasses.dataclass(frozen=True)
class Shape:
    """The numbers of a network. `layer_types`: "conv" or "full_attention" for each layer."""

    architecture: str  # "llama" or "lfm2"
    vocab: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    layer_types: tuple[str, ...]
    rope_theta: float
    norm_eps: float = 1e-5
    conv_taps: int = 3

    @staticmethod
    def from_transformers(config) -> "Shape":
        """Of a transformers config; ValueError for what this network cannot be."""
        if config.model_type not in ("llama", "lfm2"):
            raise ValueError(f"model_type {config.model_type!r}: expected llama or lfm2")
        if not config.tie_word_embeddings:
            raise ValueError("untied lm_head: expected a model whose output is its embedding table")
        rope = getattr(config, "rope_parameters", None) or {}
        if rope.get("rope_type", "default") != "default":
            raise ValueError(f"rope_type {rope['rope_type']!r}: expected default")
        if any(getattr(config, name, False) for name in ("attention_bias", "mlp_bias", "conv_bias")):
            raise ValueError("a model whose projections have biases: expected one without")
        is_lfm2 = config.model_type == "lfm2"
        types = config.layer_types if is_lfm2 else ["full_attention"] * config.num_hidden_layers
        return Shape(
            architecture=config.model_type,
            vocab=config.vocab_size,
            hidden=config.hidden_size,
            intermediate=_adjusted(config) if is_lfm2 else config.intermediate_size,
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
            layer_types=tuple(types),
            rope_theta=rope.get("rope_theta") or config.rope_theta,
            norm_eps=config.norm_eps if is_lfm2 else config.rms_norm_eps,
            conv_taps=config.conv_L_cache if is_lfm2 else 3,
        )


def _adjusted(config) -> int:
    """The width of an LFM2 feed-forward layer, as transformers derives it."""
    width = config.intermediate_size
    if config.block_auto_adjust_ff_dim:
        width = int(2 * width / 3)
        if config.block_ffn_dim_multiplier is not None:
            width = int(config.block_ffn_dim_multiplier * width)
            width = config.block_multiple_of * -(-width // config.block_multiple_of)
    return width


def elementwise(function):
    """A function of loops over elements. With `elementwise.fused` they become one loop, compiled at the first call (half a
    minute for all of them, and a C++ compiler is needed): a step of nano's training then takes three quarters of the time."""
    compiled = torch.compile(function, dynamic=True)  # compiles nothing yet

    @functools.wraps(function)
    def run(*arguments):
        return (compiled if elementwise.fused else function)(*arguments)

    return run


elementwise.fused = False


@elementwise
def rms_norm(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
    x = x.float()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight).to(dtype)


@elementwise
def gated_silu(gate: Tensor, up: Tensor) -> Tensor:
    return (F.silu(gate.float()) * up.float()).to(gate.dtype)


@elementwise
def gated_conv(gate_in: Tensor, gate_out: Tensor, x: Tensor, weight: Tensor, inside: list[Tensor]) -> Tensor:
    """Depthwise causal convolution of gate_in * x [1, T, channels] with weight [channels, taps], times gate_out.

    inside[i] [T, 1]: 1 where the row i + 1 before belongs to the same sequence, otherwise 0.
    """
    z = (gate_in * x).float()
    taps = weight.shape[-1]
    padded = F.pad(z, (0, 0, taps - 1, 0))
    y = z * weight[:, taps - 1]
    for back, same in enumerate(inside, start=1):
        y = y + padded[:, taps - 1 - back : padded.shape[1] - back] * weight[:, taps - 1 - back] * same
    return (gate_out * y).to(gate_in.dtype)


class RmsNorm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        return rms_norm(x, self.weight, self.eps, dtype)


class Linear(nn.Module):
    """[..., in] -> [..., out], without bias, in the type of `Linear.products`."""

    products = torch.bfloat16

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))

    def forward(self, x: Tensor) -> Tensor:
        return product(x, self.weight)


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x [..., in] times weight [out, in], in the type of `Linear.products`."""
    return F.linear(x.to(Linear.products), weight.to(Linear.products))


def rotary(positions: Tensor, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """Cosine and sine, [..., head_dim / 2] fp32, for positions [...]."""
    inverse = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle = positions.double().unsqueeze(-1) * inverse
    return angle.cos().float(), angle.sin().float()


@elementwise
def rotate_halves(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotates the pairs (i, i + head_dim / 2) of x [..., head_dim]."""
    low, high = x.float().chunk(2, dim=-1)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), dim=-1)


class LayerCache:
    """Keys, values [slots, kv_heads, length, head_dim] or the last convolution rows [slots, hidden, taps - 1] of one layer."""

    def __init__(self, shape: Shape, kind: str, slots: int, length: int):
        self.slots, self.length = slots, length
        if kind == "conv":
            self.rows = torch.zeros(slots, shape.conv_taps - 1, shape.hidden, dtype=Linear.products)
        else:
            self.keys = torch.zeros(slots, shape.kv_heads, length, shape.head_dim, dtype=Linear.products)
            self.values = torch.zeros_like(self.keys)


@dataclasses.dataclass(eq=False)
class Step:
    """What all layers of one call share. Without a cache, rows see the earlier rows of their sequence; with `lengths`
    the one row of the batch holds sequences of these lengths one behind the other.

    With one, each of the sequences `slots` [B] feeds rows that begin at its position `starts` [B]; keys up to `length`
    are looked at, `mask` [B, 1, T, length] says which of them a row may see.
    """

    cosine: Tensor
    sine: Tensor
    caches: list[LayerCache] | None = None
    slots: Tensor | None = None
    starts: Tensor | None = None
    length: int = 0
    mask: Tensor | None = None
    lengths: list[int] | None = None

    @functools.cached_property
    def bias(self) -> Tensor:
        """The mask of one row a sequence as [B, 1, 1, length] to add to scores."""
        return torch.zeros(()).masked_fill(~self.mask, -torch.inf)

    @functools.cached_property
    def places(self) -> Tensor:
        """[T, 1]: the place of each row in its sequence."""
        return torch.cat([torch.arange(n) for n in self.lengths]).unsqueeze(-1)

    def inside(self, back: int) -> Tensor:
        """[T, 1]: 1 where the row `back` rows before belongs to the same sequence, otherwise 0."""
        return (self.places >= back).float()


@functools.cache
def _later(rows: int) -> Tensor:
    return torch.full((rows, rows), -torch.inf, dtype=torch.bfloat16).triu(1)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q, k, v [1, heads, T, head_dim] -> [heads, T, head_dim]. For short sequences: forward and backward take two thirds of torch's own in bf16 on a CPU,
    for products of contiguous tensors and softmax in their type."""
    rows = q.shape[2]
    later = _later(256 * -(-rows // 256))[:rows, :rows].to(q.dtype)  # few masks, of which each length takes a part
    q, k, v = (x.flatten(0, 1).contiguous() for x in (q, k, v))
    scores = torch.bmm(q * q.shape[-1] ** -0.5, k.mT) + later
    return torch.bmm(scores.softmax(-1), v)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        lfm2 = shape.architecture == "lfm2"
        self.q_proj = Linear(shape.hidden, shape.heads * shape.head_dim)
        self.k_proj = Linear(shape.hidden, shape.kv_heads * shape.head_dim)
        self.v_proj = Linear(shape.hidden, shape.kv_heads * shape.head_dim)
        output = Linear(shape.heads * shape.head_dim, shape.hidden)
        if lfm2:
            self.out_proj = output
            self.q_layernorm = RmsNorm(shape.head_dim, shape.norm_eps)
            self.k_layernorm = RmsNorm(shape.head_dim, shape.norm_eps)
        else:
            self.o_proj = output

    def _heads(self, x: Tensor, count: int) -> Tensor:
        return x.unflatten(-1, (count, self.shape.head_dim)).transpose(1, 2)

    def forward(self, u: Tensor, step: Step, cache: LayerCache | None) -> Tensor:
        shape = self.shape
        q = self._heads(self.q_proj(u), shape.heads)
        k = self._heads(self.k_proj(u), shape.kv_heads)
        v = self._heads(self.v_proj(u), shape.kv_heads)
        if shape.architecture == "lfm2":
            q, k = self.q_layernorm(q), self.k_layernorm(k)
        q = rotate_halves(q, step.cosine, step.sine).to(Linear.products)
        k = rotate_halves(k, step.cosine, step.sine).to(Linear.products)
        if cache is not None:
            k, v = self._cached(k, v, step, cache)
        groups = shape.heads // shape.kv_heads
        if cache is not None and u.shape[1] == 1:  # one row each: the heads of a group are rows of one product
            q = q.reshape(-1, shape.kv_heads, groups, shape.head_dim).transpose(-1, -2)
            scores = (k @ q).transpose(-1, -2).float() * shape.head_dim**-0.5 + step.bias  # softmax is fast along rows
            mixed = (scores.softmax(-1).to(v.dtype) @ v).reshape(-1, shape.heads, 1, shape.head_dim)
        else:
            k, v = (x.repeat_interleave(groups, dim=1) for x in (k, v))
            mixed = self._mixed(q, k, v, step)
        out = self.out_proj if shape.architecture == "lfm2" else self.o_proj
        return out(mixed.transpose(1, 2).flatten(2))

    def _mixed(self, q: Tensor, k: Tensor, v: Tensor, step: Step) -> Tensor:
        if step.lengths is None:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=step.mask, is_causal=step.mask is None)
        parts = zip(*(x.split(step.lengths, dim=2) for x in (q, k, v)))
        return torch.cat([causal_attention(*part) for part in parts], dim=1).unsqueeze(0)

    def _cached(self, k: Tensor, v: Tensor, step: Step, cache: LayerCache) -> tuple[Tensor, Tensor]:
        rows = step.starts.unsqueeze(1) + torch.arange(k.shape[2])
        where = step.slots.unsqueeze(1).expand_as(rows)
        cache.keys[where, :, rows] = k.transpose(1, 2)
        cache.values[where, :, rows] = v.transpose(1, 2)
        if len(step.slots) == cache.slots:  # all slots in order: no copy
            return cache.keys, cache.values
        return cache.keys[step.slots, :, : step.length], cache.values[step.slots, :, : step.length]


class ShortConv(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.in_proj = Linear(shape.hidden, 3 * shape.hidden)
        self.out_proj = Linear(shape.hidden, shape.hidden)
        self.conv = nn.Module()
        self.conv.weight = nn.Parameter(torch.empty(shape.hidden, 1, shape.conv_taps))

    def forward(self, u: Tensor, step: Step, cache: LayerCache | None) -> Tensor:
        gate_in, gate_out, x = self.in_proj(u).chunk(3, dim=-1)
        taps = self.conv.weight.shape[-1]
        if step.lengths is not None:
            inside = [step.inside(back) for back in range(1, taps)]
            return self.out_proj(gated_conv(gate_in, gate_out, x, self.conv.weight[:, 0], inside))
        z = gate_in * x
        if cache is None:
            z = F.pad(z, (0, 0, taps - 1, 0))
        else:
            begun = (step.starts > 0).to(z.dtype).view(-1, 1, 1)  # a new sequence finds the rows of the last in its slot
            z = torch.cat((cache.rows[step.slots] * begun, z), dim=1)
            cache.rows[step.slots] = z[:, -(taps - 1) :]
        rows = u.shape[1]
        weight = self.conv.weight[:, 0].to(z.dtype)
        y = sum(z[:, tap : tap + rows] * weight[:, tap] for tap in range(taps))
        return self.out_proj(gate_out * y)


class GatedMlp(nn.Module):
    """SwiGLU under the names of the architecture: gate, up, down are w1, w3, w2 in LFM2."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.names = ("w1", "w3", "w2") if shape.architecture == "lfm2" else ("gate_proj", "up_proj", "down_proj")
        for name, size in zip(self.names, [(0, 1), (0, 1), (1, 0)]):
            widths = (shape.hidden, shape.intermediate)
            self.add_module(name, Linear(widths[size[0]], widths[size[1]]))

    def forward(self, u: Tensor) -> Tensor:
        gate, up, down = (getattr(self, name) for name in self.names)
        return down(gated_silu(gate(u), up(u)))


class Layer(nn.Module):
    def __init__(self, shape: Shape, kind: str):
        super().__init__()
        lfm2 = shape.architecture == "lfm2"
        self.names = (
            ("operator_norm", "conv" if kind == "conv" else "self_attn", "ffn_norm", "feed_forward")
            if lfm2
            else ("input_layernorm", "self_attn", "post_attention_layernorm", "mlp")
        )
        parts = (
            RmsNorm(shape.hidden, shape.norm_eps),
            ShortConv(shape) if kind == "conv" else Attention(shape),
            RmsNorm(shape.hidden, shape.norm_eps),
            GatedMlp(shape),
        )
        for name, part in zip(self.names, parts):
            self.add_module(name, part)

    def forward(self, h: Tensor, step: Step, cache: LayerCache | None) -> Tensor:
        norm, operator, ffn_norm, ffn = (getattr(self, name) for name in self.names)
        h = h + operator(norm(h, Linear.products), step, cache)
        return h + ffn(ffn_norm(h, Linear.products))


class Network(nn.Module):
    """Token ids to hidden states; `logits` multiplies them with the embedding table."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape, kind) for kind in shape.layer_types)
        self.last_norm_name = "embedding_norm" if shape.architecture == "lfm2" else "norm"
        self.add_module(self.last_norm_name, RmsNorm(shape.hidden, shape.norm_eps))

    def forward(
        self, ids: Tensor, taps: tuple[int, ...] = (), lengths: list[int] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """ids [B, T] -> normed hidden states [B, T, hidden] and the residual stream after each layer of `taps`.

        With `lengths`, ids is [1, T]: sequences of these lengths, T together, one behind the other.
        """
        positions = torch.arange(ids.shape[1]) if lengths is None else torch.cat([torch.arange(n) for n in lengths])
        cosine, sine = rotary(positions, self.shape.head_dim, self.shape.rope_theta)
        return self._run(ids, Step(cosine, sine, lengths=lengths), taps)

    def cache(self, slots: int, length: int) -> list[LayerCache]:
        return [LayerCache(self.shape, kind, slots, length) for kind in self.shape.layer_types]

    def extend(self, ids: Tensor, caches: list[LayerCache], slots: Tensor, starts: Tensor, taps: tuple[int, ...] = ()):
        """Feeds ids [B, T] to the sequences `slots` [B], of which `starts` [B] tokens are cached already.

        All slots of the cache in their order, or fewer.
        """
        rows = ids.shape[1]
        positions = starts.unsqueeze(1) + torch.arange(rows)
        every = len(slots) == caches[0].slots  # then all of the cache, masked: products with a part of it copy that part
        length = caches[0].length if every else int(starts.max()) + rows
        mask = (torch.arange(length) <= positions.unsqueeze(-1)).unsqueeze(1)
        cosine, sine = (x.unsqueeze(1) for x in rotary(positions, self.shape.head_dim, self.shape.rope_theta))
        return self._run(ids, Step(cosine, sine, caches, slots, starts, length, mask), taps)

    def _run(self, ids: Tensor, step: Step, taps: tuple[int, ...]) -> tuple[Tensor, list[Tensor]]:
        h = self.embed_tokens(ids).float()
        tapped = []
        for i, layer in enumerate(self.layers):
            h = layer(h, step, step.caches[i] if step.caches else None)
            if i in taps:
                tapped.append(h)
        return getattr(self, self.last_norm_name)(h), tapped

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [..., hidden] -> fp32 [..., vocab]."""
        return product(hidden, self.embed_tokens.weight).float()

"""DSpark: a drafter that reads residual streams of its target and proposes a block of tokens in one pass.

The published model (arXiv 2607.05147, Liquid's LFM2.5 drafters) under its published tensor names, trainable from
scratch for small targets. One draft round, with n tokens whose taps are known and an anchor `a` at position n:

    context   c_j = RMS(fc . taps_j)                     rows j < n, once per row, kept as keys and values
    block     [a, MASK, ..., MASK] from the target's embedding, at positions n .. n + block - 1
    layers    every block row sees all context rows and all block rows (no causal mask)
    logits    U_k = table . RMS(h_k);  slot k predicts position n + k + 1
    Markov    logits_k = U_k + W2 . W1[previous token];  confidence_k = sigmoid(w . [h_k; W1[previous]] + b)

The target's table (embedding = head) belongs to the target: it is passed in, frozen, and never saved here.
Not for: sampling, trees (tree.py), or deciding what to verify.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import pathlib
from typing import Iterator, Optional, Sequence

import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from espalier_tools.train import quantise
from espalier_tools.train.files import write_json, write_whole
from espalier_tools.train.network import RmsNorm, rotary

# --------------------------------------------------------------------------------------------------------------------
# Config


@dataclasses.dataclass(frozen=True)
class DSparkConfig:
    """Sizes of one drafter. `draft_vocab_size` None means that drafts come from the whole vocabulary."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    rms_norm_eps: float
    vocab_size: int
    rope_theta: float
    block_size: int
    mask_token_id: int
    target_layer_ids: tuple[int, ...]
    num_target_layers: int
    markov_rank: int
    draft_vocab_size: Optional[int] = None
    architecture: str = "Lfm2DSparkDraftModel"
    max_position_embeddings: int = 128000

    def __post_init__(self) -> None:
        object.__setattr__(self, "target_layer_ids", tuple(self.target_layer_ids))
        checks = (
            (self.heads % self.kv_heads == 0, f"heads {self.heads} is no multiple of kv_heads {self.kv_heads}"),
            (self.head_dim % 2 == 0, f"head_dim {self.head_dim} is odd: rotation needs pairs"),
            (0 <= self.mask_token_id < self.vocab_size,
             f"mask_token_id {self.mask_token_id} is outside the vocabulary of {self.vocab_size}"),
            (bool(self.target_layer_ids), "target_layer_ids is empty"),
            # The last layer's output is handed out after the final norm by common loaders: never a tap.
            (all(-1 <= i < self.num_target_layers - 1 for i in self.target_layer_ids),
             f"target_layer_ids {self.target_layer_ids}: each must be in -1 .. {self.num_target_layers - 2}"),
            (self.draft_vocab_size is None or 0 < self.draft_vocab_size <= self.vocab_size,
             f"draft_vocab_size {self.draft_vocab_size} is outside 1 .. {self.vocab_size}"),
        )
        for holds, message in checks:
            if not holds:
                raise ValueError(f"drafter config: {message}")

    @property
    def draft_rows(self) -> int:
        """Number of tokens the drafter can propose."""
        return self.vocab_size if self.draft_vocab_size is None else self.draft_vocab_size

    @property
    def tap_width(self) -> int:
        """Values of one row of taps: all tapped layers side by side, in the order of `target_layer_ids`."""
        return len(self.target_layer_ids) * self.hidden

    def to_json(self) -> dict:
        """The published config.json; `draft_vocab_size` is ours and is left out where it is None."""
        keys = {
            "architectures": [self.architecture],
            "model_type": "qwen3",  # as published: a shell that no Qwen3 class can load
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "layer_types": ["full_attention"] * self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.intermediate,
            "hidden_act": "silu",
            "rms_norm_eps": self.rms_norm_eps,
            "vocab_size": self.vocab_size,
            "rope_theta": self.rope_theta,
            "max_position_embeddings": self.max_position_embeddings,
            "rope_is_neox_style": False,
            "block_size": self.block_size,
            "dflash_config": {
                "mask_token_id": self.mask_token_id,
                "target_layer_ids": list(self.target_layer_ids),
                "num_target_layers": self.num_target_layers,
            },
            "markov_rank": self.markov_rank,
            "markov_head_type": "vanilla",
            "enable_confidence_head": True,
        }
        if self.draft_vocab_size is not None:
            keys["draft_vocab_size"] = self.draft_vocab_size
        return keys

    @staticmethod
    def from_json(keys: dict) -> "DSparkConfig":
        """Reads `to_json`'s keys; a variant that this module does not compute is refused by name."""
        for name, expected in (("rope_is_neox_style", False), ("markov_head_type", "vanilla"),
                               ("enable_confidence_head", True)):
            if keys.get(name, expected) != expected:
                raise ValueError(f"drafter config: {name} is {keys[name]!r}, only {expected!r} is implemented")
        try:
            dflash = keys["dflash_config"]
            return DSparkConfig(
                hidden=keys["hidden_size"], layers=keys["num_hidden_layers"], heads=keys["num_attention_heads"],
                kv_heads=keys["num_key_value_heads"], head_dim=keys["head_dim"],
                intermediate=keys["intermediate_size"], rms_norm_eps=keys["rms_norm_eps"],
                vocab_size=keys["vocab_size"], rope_theta=float(keys["rope_theta"]), block_size=keys["block_size"],
                mask_token_id=dflash["mask_token_id"], target_layer_ids=tuple(dflash["target_layer_ids"]),
                num_target_layers=dflash["num_target_layers"], markov_rank=keys["markov_rank"],
                draft_vocab_size=keys.get("draft_vocab_size"),
                architecture=keys.get("architectures", ["Lfm2DSparkDraftModel"])[0],
                max_position_embeddings=keys.get("max_position_embeddings", 128000))
        except KeyError as missing:
            raise ValueError(f"drafter config: key {missing} is missing") from None


# --------------------------------------------------------------------------------------------------------------------
# Building blocks


def rotation(positions: Tensor, head_dim: int, theta: float) -> Tensor:
    """[rows] int -> [2, rows, head_dim / 2] fp32: cosines and sines of the rotation at each position."""
    return torch.stack(rotary(positions, head_dim, theta))


def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """[rows, heads, head_dim], [2, rows, head_dim / 2] -> [rows, heads, head_dim] fp32, pairs (2i, 2i + 1)."""
    cosine, sine = turn[0][:, None], turn[1][:, None]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1).flatten(-2)


def block_attention(q: Tensor, k: Tensor, v: Tensor, context_k: Tensor, context_v: Tensor, visible: Tensor) -> Tensor:
    """Attention of blocks over the context rows before each block and over the block itself, in one softmax.

    q [blocks, block, heads, d]; k, v [blocks, block, kv_heads, d]; context_k, context_v [kv_heads, rows, d];
    visible [blocks]: block i sees context rows < visible[i]. Returns [blocks, block, heads * d].
    The two score matrices keep the context unrepeated: a mask over blocks * block keys would grow with blocks^2.
    """
    blocks, block, heads, d = q.shape
    kv_heads, rows = context_k.shape[:2]
    group = heads // kv_heads
    # Heads that share keys become rows of one product: [kv_heads, blocks, group * block, d].
    q = (q * d ** -0.5).view(blocks, block, kv_heads, group, d).permute(2, 0, 3, 1, 4)
    q = q.reshape(kv_heads, blocks, group * block, d)
    k, v = k.permute(2, 0, 1, 3), v.permute(2, 0, 1, 3)  # [kv_heads, blocks, block, d]

    on_context = torch.matmul(q.flatten(1, 2), context_k.transpose(1, 2)).view(kv_heads, blocks, group * block, rows)
    hidden = torch.arange(rows, device=q.device) >= visible[:, None]  # [blocks, rows]
    on_context = on_context.float().masked_fill(hidden[:, None], -math.inf)
    on_block = torch.matmul(q, k.transpose(2, 3)).float()
    weights = torch.softmax(torch.cat((on_context, on_block), dim=-1), dim=-1).to(v.dtype)

    from_context = torch.matmul(weights[..., :rows].reshape(kv_heads, blocks * group * block, rows), context_v)
    mixed = from_context.view(kv_heads, blocks, group * block, d) + torch.matmul(weights[..., rows:], v)
    return mixed.view(kv_heads, blocks, group, block, d).permute(1, 3, 0, 2, 4).reshape(blocks, block, heads * d)


class Attention(nn.Module):
    """Queries come from block rows only; keys and values from context rows and block rows."""

    def __init__(self, config: DSparkConfig):
        super().__init__()
        c = self.config = config
        self.q_proj = nn.Linear(c.hidden, c.heads * c.head_dim, bias=False)
        self.k_proj = nn.Linear(c.hidden, c.kv_heads * c.head_dim, bias=False)
        self.v_proj = nn.Linear(c.hidden, c.kv_heads * c.head_dim, bias=False)
        self.o_proj = nn.Linear(c.heads * c.head_dim, c.hidden, bias=False)
        self.q_norm = RmsNorm(c.head_dim, c.rms_norm_eps)
        self.k_norm = RmsNorm(c.head_dim, c.rms_norm_eps)

    def keys_values(self, x: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
        """x [rows, hidden], turn [2, rows, d / 2] -> keys (normed, rotated) and values, [rows, kv_heads, d] each."""
        shape = (x.shape[0], self.config.kv_heads, self.config.head_dim)
        v = self.v_proj(x).view(shape)
        k = rotate(self.k_norm(self.k_proj(x).view(shape)), turn)
        return k.to(v.dtype), v

    def forward(self, u: Tensor, turn: Tensor, context: Sequence["Span"]) -> Tensor:
        """u [blocks, block, hidden] (normed), turn [2, blocks * block, d / 2] -> [blocks, block, hidden]."""
        c = self.config
        blocks, block = u.shape[:2]
        flat = u.flatten(0, 1)
        k, v = (x.view(blocks, block, c.kv_heads, c.head_dim) for x in self.keys_values(flat, turn))
        q = self.q_norm(self.q_proj(flat).view(-1, c.heads, c.head_dim))
        q = rotate(q, turn).view(blocks, block, c.heads, c.head_dim).to(v.dtype)
        # Packed sequences share every matrix product but attend apart: one call per sequence.
        mixed = [block_attention(q[s.blocks], k[s.blocks], v[s.blocks], s.k, s.v, s.visible) for s in context]
        return self.o_proj(mixed[0] if len(mixed) == 1 else torch.cat(mixed))


class Mlp(nn.Module):
    def __init__(self, config: DSparkConfig):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden, config.intermediate, bias=False)
        self.up_proj = nn.Linear(config.hidden, config.intermediate, bias=False)
        self.down_proj = nn.Linear(config.intermediate, config.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, config: DSparkConfig):
        super().__init__()
        self.input_layernorm = RmsNorm(config.hidden, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RmsNorm(config.hidden, config.rms_norm_eps)
        self.mlp = Mlp(config)

    def forward(self, h: Tensor, turn: Tensor, context: Sequence["Span"]) -> Tensor:
        """h [blocks, block, hidden] fp32 -> the same."""
        h = h + self.self_attn(self.input_layernorm(h), turn, context)
        return h + self.mlp(self.post_attention_layernorm(h))


class MarkovHead(nn.Module):
    """bias(previous) = W2 . W1[previous]: what the newest token adds to the next one's logits."""

    def __init__(self, config: DSparkConfig):
        super().__init__()
        self.markov_w1 = nn.Embedding(config.vocab_size, config.markov_rank)
        self.markov_w2 = nn.Linear(config.markov_rank, config.draft_rows, bias=False)


class ConfidenceHead(nn.Module):
    def __init__(self, config: DSparkConfig):
        super().__init__()
        self.proj = nn.Linear(config.hidden + config.markov_rank, 1)


@dataclasses.dataclass
class Span:
    """One sequence's context in one layer: k, v [kv_heads, rows, d]; `blocks` are the blocks that look at it."""

    k: Tensor
    v: Tensor
    blocks: slice
    visible: Tensor  # [blocks in the slice] int64: rows before each anchor


@dataclasses.dataclass
class DraftOutputs:
    """What a training forward gives, for `A` anchors and `B` slots each."""

    hidden: Tensor  # [A, B, hidden] fp32, after `norm`
    base_logits: Tensor  # [A, B, draft rows]
    logits: Tensor  # [A, B, draft rows], base + Markov bias of the true previous token
    confidence_logits: Tensor  # [A, B] fp32


# --------------------------------------------------------------------------------------------------------------------
# The drafter


class DSpark(nn.Module):
    """Parameters carry exactly the published names. `table` [vocab, hidden] is the target's embedding and head.

    `d2t` [draft_vocab_size] int64 names the token of each draft row. The name is EAGLE-3's, but EAGLE-3 stores
    differences (token - row); these are **absolute token ids**. None (and not saved) for the whole vocabulary.
    """

    def __init__(self, config: DSparkConfig, table: Tensor, d2t: Optional[Tensor] = None):
        super().__init__()
        if tuple(table.shape) != (config.vocab_size, config.hidden):
            raise ValueError(f"target table is {tuple(table.shape)}, config says {(config.vocab_size, config.hidden)}")
        self.config = c = config
        self.fc = nn.Linear(c.tap_width, c.hidden, bias=False)
        self.hidden_norm = RmsNorm(c.hidden, c.rms_norm_eps)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = RmsNorm(c.hidden, c.rms_norm_eps)
        self.markov_head = MarkovHead(c)
        self.confidence_head = ConfidenceHead(c)
        self._set_vocabulary(table.detach(), d2t)
        # Training divides taps by this, `save` folds it into fc: the published model has no such tensor.
        self.register_buffer("tap_scale", torch.ones(c.tap_width), persistent=False)
        self._initialise()

    def _set_vocabulary(self, table: Tensor, d2t: Optional[Tensor]) -> None:
        """Buffers: table [vocab, hidden], head [draft rows, hidden], d2t [draft rows], t2d [vocab] (-1: none)."""
        c = self.config
        if (d2t is None) != (c.draft_vocab_size is None):
            given = "missing" if d2t is None else "given"
            raise ValueError(f"draft_vocab_size is {c.draft_vocab_size}, but d2t is {given}")
        self.register_buffer("table", table, persistent=False)
        self.register_buffer("d2t", None if d2t is None else d2t.to(torch.int64))
        rows = torch.arange(c.draft_rows, device=table.device)
        if d2t is None:
            self.register_buffer("head", table, persistent=False)
            self.register_buffer("t2d", rows, persistent=False)
            return
        if d2t.shape != (c.draft_vocab_size,) or d2t.unique().numel() != d2t.numel() \
                or not (0 <= int(d2t.min()) and int(d2t.max()) < c.vocab_size):
            raise ValueError(f"d2t must name {c.draft_vocab_size} different tokens below {c.vocab_size}")
        t2d = torch.full((c.vocab_size,), -1, dtype=torch.int64, device=table.device)
        t2d[self.d2t] = rows
        self.register_buffer("head", table[self.d2t], persistent=False)
        self.register_buffer("t2d", t2d, persistent=False)

    @torch.no_grad()
    def _initialise(self) -> None:
        """Unit-variance products; what ends on the residual stream is scaled down by its number of terms."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                deviation = module.in_features ** -0.5
                if name.endswith(("o_proj", "down_proj")):
                    deviation /= math.sqrt(2 * self.config.layers)
                module.weight.normal_(0, deviation)
        # Logits of unit variance: with weights of 1 a small target's table gives a first loss twice that of guessing.
        if not self.head.is_meta:
            self.norm.weight.fill_(1 / float(self.head.float().square().sum(-1).mean().sqrt().clamp_min(1e-3)))
        # As in LoRA: one factor random, one zero, so that the bias starts at 0 and its gradient does not.
        self.markov_head.markov_w1.weight.normal_(0, self.config.markov_rank ** -0.5)
        self.markov_head.markov_w2.weight.zero_()
        self.confidence_head.proj.weight.zero_()
        self.confidence_head.proj.bias.zero_()

    @torch.no_grad()
    def set_tap_scale(self, taps: Tensor) -> None:
        """Takes each tap channel's root mean square from rows like these, taps [rows, tap_width].

        Raw residual streams have channels hundreds of times above the rest; with one learning rate for all
        columns of fc those drown the others. Call before training; the function stays the published one.
        """
        self.tap_scale.copy_(taps.float().square().mean(0).sqrt().clamp_min(1e-3))

    # -- pieces of one round

    def context_rows(self, taps: Tensor) -> Tensor:
        """taps [rows, tap_width] -> c [rows, hidden] fp32."""
        return self.hidden_norm(self.fc(taps.float() / self.tap_scale))

    def context_keys_values(self, taps: Tensor, positions: Tensor) -> list[tuple[Tensor, Tensor]]:
        """taps [rows, tap_width], positions [rows] -> per layer keys and values, [kv_heads, rows, head_dim] each."""
        c = self.context_rows(taps)
        turn = rotation(positions, self.config.head_dim, self.config.rope_theta)
        pairs = (layer.self_attn.keys_values(c, turn) for layer in self.layers)
        return [(k.transpose(0, 1), v.transpose(0, 1)) for k, v in pairs]

    def block_hidden(self, anchor_tokens: Tensor, positions: Tensor, context: Sequence[Sequence[Span]]) -> Tensor:
        """anchor_tokens, positions [A], context: spans per layer -> [A, block, hidden] fp32, after `norm`."""
        c = self.config
        block = torch.arange(c.block_size, device=positions.device)
        ids = torch.where(block == 0, anchor_tokens[:, None], c.mask_token_id)
        turn = rotation((positions[:, None] + block).flatten(), c.head_dim, c.rope_theta)
        h = F.embedding(ids, self.table).float()
        for layer, spans in zip(self.layers, context):
            h = layer(h, turn, spans)
        return self.norm(h)

    def base_logits(self, hidden: Tensor, rows: Optional[Tensor] = None) -> Tensor:
        """[..., hidden] -> [..., draft rows], or of the draft rows named alone."""
        head = self.head if rows is None else self.head[rows]
        return F.linear(hidden, head if torch.is_autocast_enabled(hidden.device.type) else head.to(hidden.dtype))

    def markov_bias(self, previous: Tensor, rows: Optional[Tensor] = None) -> Tensor:
        """Token ids [...] -> [..., draft rows], or of the draft rows named alone."""
        w2 = self.markov_head.markov_w2.weight
        return F.linear(self.markov_head.markov_w1(previous), w2 if rows is None else w2[rows])

    def confidence_logits(self, hidden: Tensor, previous: Tensor) -> Tensor:
        """hidden [..., hidden], previous token ids [...] -> [...] fp32."""
        with torch.autocast(hidden.device.type, enabled=False):
            features = torch.cat((hidden.float(), self.markov_head.markov_w1(previous).float()), dim=-1)
            proj = self.confidence_head.proj
            return F.linear(features, proj.weight.float(), proj.bias.float()).squeeze(-1)

    # -- whole sequences

    def forward_train(self, taps: Tensor, token_ids: Tensor, anchors: Tensor, segments: Optional[Tensor] = None,
                      rows: Optional[Tensor] = None, dtype: Optional[torch.dtype] = torch.bfloat16) -> DraftOutputs:
        """All blocks of one sequence, or of several packed ones, at once.

        token_ids [T]; anchors [A] ascending row indices; taps [rows, tap_width] of the first rows, at least as many as
        the last anchor's index (no block sees later ones); segments [T] non-decreasing: rows with equal numbers are
        one sequence, positions start at 0 in each. rows: the draft rows that logits are made of, all if None. dtype: of the
        matrix products, None for fp32.
        """
        with _products_in(dtype, taps.device):
            hidden = self.hidden_of(taps, token_ids, anchors, segments)
            previous = token_ids.long()[block_rows(anchors, self.config.block_size, token_ids.numel())]
            base = self.base_logits(hidden, rows)
            logits = base + self.markov_bias(previous, rows)
            return DraftOutputs(hidden, base, logits, self.confidence_logits(hidden, previous))

    @torch.no_grad()
    def forward_base(self, taps: Tensor, token_ids: Tensor, anchors: Tensor,
                     dtype: Optional[torch.dtype] = torch.bfloat16) -> Tensor:
        """As forward_train without teacher forcing: base logits [A, block, draft rows] of many rounds at once."""
        with _products_in(dtype, taps.device):
            return self.base_logits(self.hidden_of(taps, token_ids, anchors))

    def hidden_of(self, taps: Tensor, token_ids: Tensor, anchors: Tensor, segments: Optional[Tensor] = None) -> Tensor:
        """As forward_train, only up to the slots' hidden rows [A, block, hidden] fp32."""
        pieces = _pieces(token_ids.numel(), anchors, segments)
        rows = int(anchors[-1])
        if taps.shape[0] < rows:
            raise ValueError(f"{taps.shape[0]} rows of taps, but the last anchor is at {rows}")
        positions = torch.arange(token_ids.numel(), device=taps.device)
        for first, last, _ in pieces:
            positions[first:last] -= first
        keys_values = self.context_keys_values(taps[:rows], positions[:rows])
        context = [[_span(k, v, anchors, piece) for piece in pieces] for k, v in keys_values]
        return self.block_hidden(token_ids.long()[anchors], positions[anchors], context)


def _products_in(dtype: Optional[torch.dtype], device: torch.device) -> contextlib.AbstractContextManager:
    if dtype is None or dtype == torch.float32:
        return torch.autocast(device.type, enabled=False)
    return torch.autocast(device.type, dtype=dtype)


def _pieces(rows: int, anchors: Tensor, segments: Optional[Tensor]) -> list[tuple[int, int, slice]]:
    """(first row, row behind the last, its anchors) of each sequence that has an anchor."""
    ascending = anchors.numel() > 0 and not bool((anchors[1:] < anchors[:-1]).any())
    if not ascending or not 0 <= int(anchors[0]) <= int(anchors[-1]) < rows:
        raise ValueError(f"anchors must be ascending rows below {rows}, and at least one")
    if segments is None:
        return [(0, rows, slice(0, anchors.numel()))]
    counts = torch.unique_consecutive(segments, return_counts=True)[1]
    ends = counts.cumsum(0)
    bounds = torch.searchsorted(anchors.contiguous(), ends).tolist()
    spans = zip((ends - counts).tolist(), ends.tolist(), [0] + bounds[:-1], bounds)
    return [(first, last, slice(a, b)) for first, last, a, b in spans if b > a]


def _span(k: Tensor, v: Tensor, anchors: Tensor, piece: tuple[int, int, slice]) -> Span:
    first, _, blocks = piece
    visible = anchors[blocks] - first
    last = int(anchors[blocks.stop - 1])
    return Span(k[:, first:last], v[:, first:last], blocks, visible)


def block_rows(anchors: Tensor, block: int, rows: int) -> Tensor:
    """[A] -> [A, block]: row anchor + k of slot k, whose token is the slot's Markov parent and whose target
    distribution is the slot's teacher. Rows past the end are clipped; `block_labels` marks them invalid."""
    return (anchors[:, None] + torch.arange(block, device=anchors.device)).clamp_max(rows - 1)


# --------------------------------------------------------------------------------------------------------------------
# Loss


@dataclasses.dataclass(frozen=True)
class LossWeights:
    """Weights of the terms; each term is a mean over valid slots k with weight exp(-k / decay)."""

    hard: float = 0.1  # cross-entropy with the true next token
    distance: float = 0.9  # sum over tokens of |p_draft - p_target|
    soft: float = 0.0  # cross-entropy with the target's distribution
    confidence: float = 1.0  # binary cross-entropy of the confidence with 1 - distance / 2
    decay: float = 4.0


PUBLISHED_LOSS = LossWeights()
# Learns faster at the start and at small scale: the L1 term has no gradient towards tokens of p_draft near 0.
SOFT_LOSS = LossWeights(hard=0.0, distance=0.0, soft=1.0)


@dataclasses.dataclass
class TopTeacher:
    """The target's most probable tokens per slot: ids [A, B, n] int64, probabilities [A, B, n] of the whole
    vocabulary. What they leave of 1 is one rest, compared with the drafter's rest as a whole."""

    ids: Tensor
    probabilities: Tensor


@dataclasses.dataclass
class BlockTargets:
    labels: Tensor  # [A, B] int64: the true token of each slot
    valid: Tensor  # [A, B] bool: a prefix of the slots
    teacher: TopTeacher


def block_targets(token_ids: Tensor, anchors: Tensor, block: int, answer: Tensor, top_ids: Tensor, top_logits: Tensor,
                  log_sum_exp: Optional[Tensor] = None, segments: Optional[Tensor] = None) -> BlockTargets:
    """Labels and teacher of every slot. token_ids [T]; anchors [A]; answer [T] bool: the token is the target's own;
    top_ids, top_logits [rows, n], log_sum_exp [rows]: the target's distribution of the token after each row, rows
    T or T - 1. Without log_sum_exp top_logits are log-probabilities already."""
    rows = token_ids.numel()
    parent = block_rows(anchors, block, top_ids.shape[0])
    label_row = anchors[:, None] + 1 + torch.arange(block, device=anchors.device)
    inside = label_row < rows
    label_row = label_row.clamp_max(rows - 1)
    usable = inside & answer.bool()[label_row]
    if segments is not None:
        usable &= segments[label_row] == segments[anchors][:, None]
    log_p = top_logits.float() if log_sum_exp is None else top_logits.float() - log_sum_exp.float()[:, None]
    return BlockTargets(labels=token_ids.long()[label_row], valid=usable.long().cumprod(1).bool(),
                        teacher=TopTeacher(top_ids.long()[parent], log_p.exp()[parent]))


def loss(outputs: DraftOutputs, labels: Tensor, valid: Tensor, teacher: TopTeacher | Tensor, t2d: Tensor,
         weights: LossWeights = PUBLISHED_LOSS) -> tuple[Tensor, dict[str, float]]:
    """The weighted sum, and its terms as numbers (with `acceptance`: the mean of 1 - distance / 2).

    labels [A, B] token ids; valid [A, B]; teacher: TopTeacher, or the target's logits [A, B, vocab];
    t2d [vocab]: the model's buffer, draft row of each token or -1. Tokens outside the draft vocabulary cannot be
    proposed: their mass counts as lost acceptance, and slots with such a label have no hard term.
    """
    logits = outputs.logits.float()
    normaliser = logits.logsumexp(-1)
    slot_weight = valid * torch.exp(-torch.arange(valid.shape[1], device=valid.device) / weights.decay)

    rows = t2d[labels]
    log_label = logits.gather(-1, rows.clamp_min(0)[..., None]).squeeze(-1) - normaliser
    if isinstance(teacher, TopTeacher):
        distance, soft = _against_top(logits, normaliser, teacher, t2d)
    else:
        distance, soft = _against_all(logits - normaliser[..., None], teacher, t2d)
    acceptance = 1 - distance.detach() / 2
    confidence = F.binary_cross_entropy_with_logits(outputs.confidence_logits, acceptance.clamp(0, 1), reduction="none")

    terms = {"hard": _mean(-log_label, slot_weight * (rows >= 0)), "distance": _mean(distance, slot_weight),
             "soft": _mean(soft, slot_weight), "confidence": _mean(confidence, slot_weight)}
    total = sum(getattr(weights, name) * term for name, term in terms.items() if getattr(weights, name) != 0)
    numbers = {name: float(term.detach()) for name, term in terms.items()}
    return total, numbers | {"acceptance": float(_mean(acceptance, slot_weight))}


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    return (values * weights).sum() / weights.sum().clamp_min(1e-9)


def _against_top(logits: Tensor, normaliser: Tensor, teacher: TopTeacher, t2d: Tensor) -> tuple[Tensor, Tensor]:
    """logits [A, B, draft rows] fp32, normaliser [A, B] -> (L1 distance, soft cross-entropy) [A, B].

    Three parts of the target's mass: known and proposable, known but outside the draft vocabulary (never met), and
    the unknown rest, met by the drafter's mass outside the known rows as far as the two agree in size. With a rest
    the distance is a lower bound; for the target's top 16 the rest is a few per cent.
    """
    rows = t2d[teacher.ids]
    known = rows >= 0
    p_target = teacher.probabilities * known
    log_draft = logits.gather(-1, rows.clamp_min(0)) - normaliser[..., None]
    p_draft = log_draft.exp() * known
    rest_target = (1 - teacher.probabilities.sum(-1)).clamp_min(0)
    rest_draft = (1 - p_draft.sum(-1)).clamp_min(1e-6)
    never_met = (teacher.probabilities * ~known).sum(-1)
    distance = (p_draft - p_target).abs().sum(-1) + never_met + (rest_draft - rest_target).abs()
    return distance, -(p_target * log_draft).sum(-1) - rest_target * rest_draft.log()


def _against_all(log_draft: Tensor, target_logits: Tensor, t2d: Tensor) -> tuple[Tensor, Tensor]:
    """log_draft [A, B, draft rows], target_logits [A, B, vocab] -> (L1 distance, soft cross-entropy) [A, B]."""
    p_target = torch.softmax(target_logits.float(), dim=-1)
    tokens = torch.nonzero(t2d >= 0).squeeze(-1)
    order = torch.empty_like(tokens)
    order[t2d[tokens]] = tokens  # the token of each draft row
    p_target = p_target[..., order]
    distance = (log_draft.exp() - p_target).abs().sum(-1) + (1 - p_target.sum(-1)).clamp_min(0)
    return distance, -(p_target * log_draft).sum(-1)


@torch.no_grad()
def slot_accuracy(outputs: DraftOutputs, labels: Tensor, valid: Tensor, t2d: Tensor) -> Tensor:
    """[B] fp32: how often each slot's best row is the label, given the true previous token (greedy acceptance)."""
    hits = (outputs.logits.argmax(-1) == t2d[labels]) & valid
    return hits.sum(0) / valid.sum(0).clamp_min(1)


# --------------------------------------------------------------------------------------------------------------------
# Decoding


class DraftState:
    """One conversation's drafter: keys and values of all committed rows. Append-only, since only committed rows
    enter; a block's own keys and values are dropped after each round. Works in fp32 unless `dtype` says otherwise."""

    def __init__(self, model: DSpark, dtype: Optional[torch.dtype] = None):
        self.model = model
        self.dtype = dtype
        self.length = 0
        c = model.config
        empty = torch.empty(2, c.kv_heads, 0, c.head_dim, device=model.fc.weight.device)
        self.cache = [empty for _ in model.layers]  # per layer [keys or values, kv_heads, capacity, head_dim]

    @torch.no_grad()
    def append(self, taps: Tensor) -> None:
        """taps [rows, tap_width] of the next committed positions."""
        rows = taps.shape[0]
        if rows == 0:
            return
        positions = torch.arange(self.length, self.length + rows, device=taps.device)
        with _products_in(self.dtype, taps.device):
            fresh = self.model.context_keys_values(taps, positions)
        for i, (k, v) in enumerate(fresh):
            old = self.cache[i]
            if self.length + rows > old.shape[2]:
                room = max(2 * old.shape[2], self.length + rows, 64)
                grown = k.new_empty(2, old.shape[1], room, old.shape[3])
                grown[:, :, :self.length] = old[:, :, :self.length]
                self.cache[i] = old = grown
            old[0, :, self.length:self.length + rows] = k
            old[1, :, self.length:self.length + rows] = v
        self.length += rows

    @torch.no_grad()
    def propose_base(self, anchor: int) -> tuple[Tensor, Tensor]:
        """The anchor is the token at position `length`, not yet run through the target. Returns base logits
        [block, draft rows] and hidden [block, hidden]; slot k is about position length + k + 1."""
        device = self.cache[0].device
        position = torch.tensor([self.length], device=device)
        n = self.length
        with _products_in(self.dtype, device):
            context = [[Span(kv[0, :, :n], kv[1, :, :n], slice(0, 1), position)] for kv in self.cache]
            hidden = self.model.block_hidden(torch.tensor([anchor], device=device), position, context)[0]
            return self.model.base_logits(hidden).float(), hidden

    @torch.no_grad()
    def markov_bias(self, previous: Tensor | Sequence[int]) -> Tensor:
        """Token ids [n] -> [n, draft rows] fp32: added to the base logits of the slot after each of them."""
        previous = torch.as_tensor(previous, dtype=torch.int64, device=self.cache[0].device)
        with _products_in(self.dtype, previous.device):
            return self.model.markov_bias(previous).float()


# --------------------------------------------------------------------------------------------------------------------
# Files


def published_tensors(model: DSpark) -> Iterator[tuple[str, Tensor]]:
    """Names and values as the files hold them: the tap scale is folded into fc, the target's table is left out."""
    for name, value in model.state_dict().items():
        yield name, value / model.tap_scale.to(value.dtype) if name == "fc.weight" else value


def save(model: DSpark, folder: str | pathlib.Path, dtype: torch.dtype = torch.bfloat16) -> None:
    """Writes config.json and model.safetensors under the published names; d2t stays int64."""
    folder = pathlib.Path(folder)
    tensors = {name: (value.to(dtype) if value.is_floating_point() else value).cpu().contiguous()
               for name, value in published_tensors(model)}
    content = safetensors.torch.save(tensors, metadata={"format": "pt"})
    write_whole(folder / "model.safetensors", lambda file: file.write(content))
    write_json(folder / "config.json", model.config.to_json() | {"torch_dtype": str(dtype).removeprefix("torch.")})


def load(folder: str | pathlib.Path, table: Tensor) -> DSpark:
    """The drafter of `folder`, in fp32, on the target's table [vocab, hidden]; published form or in 8 bits (quantise.py)."""
    tensors, keys = quantise.load_checkpoint(pathlib.Path(folder))
    return from_tensors(tensors, keys, table, folder)


def from_tensors(tensors: dict[str, Tensor], keys: dict, table: Tensor, source: str | pathlib.Path) -> DSpark:
    """A drafter of tensors under the published names and the keys of config.json; `source` names it in errors."""
    config = DSparkConfig.from_json(keys)
    tensors = {name.removeprefix("model."): value for name, value in tensors.items()}
    model = DSpark(config, table, tensors.get("d2t") if config.draft_vocab_size is not None else None)
    _check_tensors(tensors, model.state_dict(), source)
    model.load_state_dict({name: value.to(model.state_dict()[name].dtype) for name, value in tensors.items()})
    return model


def _check_tensors(found: dict[str, Tensor], expected: dict[str, Tensor], source: str | pathlib.Path) -> None:
    """Raises one error that names every missing, unknown or misshapen tensor."""
    faults = [f"{name} is missing" for name in sorted(expected.keys() - found.keys())]
    faults += [f"{name} is unknown" for name in sorted(found.keys() - expected.keys())]
    faults += [f"{name} is {tuple(found[name].shape)}, config says {tuple(expected[name].shape)}"
               for name in sorted(found.keys() & expected.keys()) if found[name].shape != expected[name].shape]
    if faults:
        raise ValueError(f"drafter {source}: " + "; ".join(faults))

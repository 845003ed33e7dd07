"""DSpark once more, row by row from its published description, sharing no code with the module.

Straight loops in float64 over vectors of torch; the rotation is a product of complex numbers. Not for use outside tests.
"""

import cmath

import torch


def norm(x, weight, eps):
    """x [width] -> [width]."""
    return x / torch.sqrt(torch.mean(x * x) + eps) * weight


def turned(x, position, theta):
    """One head's vector x [d] at a position: its pairs (2i, 2i + 1) are complex numbers, each turned by an angle."""
    d = len(x)
    out = torch.empty(d, dtype=torch.float64)
    for i in range(d // 2):
        z = complex(x[2 * i], x[2 * i + 1]) * cmath.exp(1j * position * theta ** (-2 * i / d))
        out[2 * i], out[2 * i + 1] = z.real, z.imag
    return out


def silu(x):
    return x / (1 + torch.exp(-x))


def attended(q, keys, values):
    """q [d], keys and values lists of [d] -> [d]."""
    scores = torch.stack([q @ k for k in keys]) / len(q) ** 0.5
    weights = torch.exp(scores - scores.max())
    weights = weights / weights.sum()
    return sum(w * v for w, v in zip(weights, values))


def layer_rows(w, prefix, keys, context, n, h):
    """One layer. context: list of n rows [hidden]; h: list of block rows [hidden] -> list of block rows."""
    heads, kv_heads, d = keys["num_attention_heads"], keys["num_key_value_heads"], keys["head_dim"]
    eps, theta = keys["rms_norm_eps"], keys["rope_theta"]
    w = {name.removeprefix(prefix): value for name, value in w.items() if name.startswith(prefix)}
    u = [norm(row, w["input_layernorm.weight"], eps) for row in h]
    sources = list(context) + u
    out = []
    for k, row in enumerate(h):
        mixed = []
        for head in range(heads):
            shared = head // (heads // kv_heads)
            rows, shared_rows = slice(head * d, head * d + d), slice(shared * d, shared * d + d)
            q = norm(w["self_attn.q_proj.weight"][rows] @ u[k], w["self_attn.q_norm.weight"], eps)
            all_keys = []
            for position, source in enumerate(sources):  # context row j at j, block row k at n + k: no gap
                key = norm(w["self_attn.k_proj.weight"][shared_rows] @ source, w["self_attn.k_norm.weight"], eps)
                all_keys.append(turned(key, position, theta))
            all_values = [w["self_attn.v_proj.weight"][shared_rows] @ source for source in sources]
            mixed.append(attended(turned(q, n + k, theta), all_keys, all_values))
        row = row + w["self_attn.o_proj.weight"] @ torch.cat(mixed)
        v = norm(row, w["post_attention_layernorm.weight"], eps)
        gated = silu(w["mlp.gate_proj.weight"] @ v) * (w["mlp.up_proj.weight"] @ v)
        out.append(row + w["mlp.down_proj.weight"] @ gated)
    return out


def draft_round(w, keys, table, draft_tokens, taps, anchor, truth):
    """One round. w: published name -> array; keys: config.json; table [V, hidden]; draft_tokens: token ids that may be
    drafted; taps [n, taps, hidden]; anchor: token at position n; truth: tokens after it (the Markov parents).

    Returns hidden [block, hidden], base logits and logits [block, draft tokens], confidences [block]."""
    n, block = len(taps), keys["block_size"]
    context = [norm(w["fc.weight"] @ torch.cat(list(row)), w["hidden_norm.weight"], keys["rms_norm_eps"])
               for row in taps]
    h = [table[anchor]] + [table[keys["dflash_config"]["mask_token_id"]]] * (block - 1)
    for i in range(keys["num_hidden_layers"]):
        h = layer_rows(w, f"layers.{i}.", keys, context, n, h)
    h = [norm(row, w["norm.weight"], keys["rms_norm_eps"]) for row in h]
    base, logits, confidence = [], [], []
    previous = anchor
    for k in range(block):
        code = w["markov_head.markov_w1.weight"][previous]
        base.append(torch.stack([table[t] @ h[k] for t in draft_tokens]))
        logits.append(base[k] + w["markov_head.markov_w2.weight"] @ code)
        z = w["confidence_head.proj.weight"][0] @ torch.cat([h[k], code]) + w["confidence_head.proj.bias"][0]
        confidence.append(1 / (1 + torch.exp(-z)))
        previous = truth[k]
    return torch.stack(h), torch.stack(base), torch.stack(logits), torch.stack(confidence)

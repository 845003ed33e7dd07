"""The drafter module: against the definition, decoding against training, files, loss.

Run from python/:  PYTHONPATH=. OMP_NUM_THREADS=1 ../.venv/bin/pytest tests/train/test_dspark.py
"""

import contextlib
import json
import math
import pathlib
import sys
import tempfile

import numpy as np
import torch

from espalier_tools.train.drafter import dspark
from espalier_tools.train.drafter.dspark import DraftState, DSpark, DSparkConfig, TopTeacher

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import dspark_definition as definition  # noqa: E402


def small_config(**changes) -> DSparkConfig:
    """SmolLM2-135M's drafter with all widths divided: 9 / 3 heads, FFN about 2.67 hidden, three taps."""
    sizes = dict(hidden=36, layers=1, heads=9, kv_heads=3, head_dim=4, intermediate=96, rms_norm_eps=1e-5,
                 vocab_size=61, rope_theta=1e5, block_size=6, mask_token_id=1, target_layer_ids=(1, 5, 8),
                 num_target_layers=12, markov_rank=8)
    return DSparkConfig(**(sizes | changes))


CONFIGS = (
    small_config(),
    small_config(draft_vocab_size=17, block_size=4),
    small_config(hidden=32, heads=4, kv_heads=4, head_dim=16, layers=2, block_size=3, rope_theta=1e6),
    small_config(hidden=64, heads=8, kv_heads=2, head_dim=8, layers=5, intermediate=192, block_size=9,
                 target_layer_ids=(2, 4, 6, 8, 10), rope_theta=1e7),
    small_config(hidden=24, heads=6, kv_heads=1, head_dim=8, block_size=1, target_layer_ids=(-1,), draft_vocab_size=5),
)


def random_model(config: DSparkConfig, seed: int) -> DSpark:
    """All parameters random, norms and heads included, so that a forgotten one shows."""
    torch.manual_seed(seed)
    d2t = None if config.draft_vocab_size is None else torch.randperm(config.vocab_size)[: config.draft_vocab_size]
    model = DSpark(config, torch.randn(config.vocab_size, config.hidden), d2t)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0, parameter.shape[1] ** -0.5)
    return model


def random_text(config: DSparkConfig, rows: int):
    """(taps [rows, tap_width], token ids [rows])."""
    return torch.randn(rows, config.tap_width) * 3, torch.randint(0, config.vocab_size, (rows,))


@contextlib.contextmanager
def raises(*words: str):
    """ValueError whose message has all the words."""
    try:
        yield
    except ValueError as error:
        assert all(word in str(error) for word in words), str(error)
    else:
        raise AssertionError("no ValueError")


def close(a, b, tolerance=1e-4):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    assert a.shape == b.shape, (a.shape, b.shape)
    assert np.abs(a - b).max() <= tolerance * max(1, np.abs(b).max()), np.abs(a - b).max()


# -- against the definition


def test_module_is_the_published_definition():
    for seed, config in enumerate(CONFIGS):
        model = random_model(config, seed)
        rows = 11
        taps, ids = random_text(config, rows + config.block_size)
        anchors = torch.tensor([0, 1, 4, rows - 1])
        with torch.no_grad():
            out = model.forward_train(taps[:rows], ids, anchors, dtype=None)
        weights = {name: value.double() for name, value in model.state_dict().items() if name != "d2t"}
        draft_tokens = range(config.vocab_size) if model.d2t is None else model.d2t.tolist()
        for a, n in enumerate(anchors.tolist()):
            rows_before = taps[:n].double().reshape(n, len(config.target_layer_ids), config.hidden)
            hidden, base, logits, confidence = definition.draft_round(
                weights, config.to_json(), model.table.double(), draft_tokens, rows_before, int(ids[n]),
                ids[n + 1:].tolist())
            close(out.hidden[a], hidden)
            close(out.base_logits[a], base)
            close(out.logits[a], logits)
            close(out.confidence_logits[a].sigmoid(), confidence)


# -- decoding against training, and blocks against each other


def test_decoding_is_training():
    for seed, config in enumerate(CONFIGS):
        model = random_model(config, 10 + seed)
        taps, ids = random_text(config, 150)
        anchors = [0, 1, 2, 63, 64, 65, 149]
        with torch.no_grad():
            out = model.forward_train(taps, ids, torch.tensor(anchors), dtype=None)
        state = DraftState(model)
        for a, n in enumerate(anchors):
            # Rows come one by one, then in larger pieces, as after a prompt or an accepted path.
            state.append(taps[state.length:n][:1])
            state.append(taps[state.length:n])
            assert state.length == n
            for _ in range(2):  # a round leaves no trace
                base, hidden = state.propose_base(int(ids[n]))
            close(base, out.base_logits[a], 1e-5)
            close(hidden, out.hidden[a], 1e-5)
            previous = ids[n:n + config.block_size]
            logits = base[: len(previous)] + state.markov_bias(previous)
            close(logits, out.logits[a][: len(previous)], 1e-5)


def test_all_anchors_at_once_are_each_alone():
    model = random_model(CONFIGS[0], 20)
    taps, ids = random_text(model.config, 40)
    together = model.forward_base(taps, ids, torch.arange(40), None)
    for n in (0, 7, 39):
        close(together[n], model.forward_base(taps, ids, torch.tensor([n]), None)[0], 1e-5)


def test_blocks_see_no_row_at_or_behind_their_anchor():
    model = random_model(CONFIGS[0], 21)
    taps, ids = random_text(model.config, 30)
    anchors = torch.tensor([0, 5, 12])
    before = model.forward_base(taps, ids, anchors, None)
    changed = taps.clone()
    changed[12:] = float("nan")
    close(model.forward_base(changed, ids, anchors, None), before, 0)
    changed = taps.clone()
    changed[11] += 1
    after = model.forward_base(changed, ids, anchors, None)
    close(after[:2], before[:2], 0)
    assert (after[2] - before[2]).abs().max() > 1e-3


def test_packed_sequences_do_not_meet():
    model = random_model(CONFIGS[0], 22)
    config = model.config
    texts = [random_text(config, rows) for rows in (20, 3, 9, 15)]
    taps, ids = torch.cat([t for t, _ in texts]), torch.cat([i for _, i in texts])
    segments = torch.tensor([4] * 20 + [5] * 3 + [7] * 9 + [9] * 15)
    chosen = [[0, 19], [1], [], [0, 3, 14]]  # the third sequence has no anchor
    anchors = torch.tensor([0, 19, 21, 32, 35, 46])
    with torch.no_grad():
        packed = model.forward_train(taps, ids, anchors, segments, dtype=None)
        alone = [model.forward_train(t, i, torch.tensor(a), dtype=None) for (t, i), a in zip(texts, chosen) if a]
    close(packed.hidden, torch.cat([o.hidden for o in alone]), 1e-5)
    close(packed.base_logits, torch.cat([o.base_logits for o in alone]), 1e-5)


def test_bf16_is_near_fp32():
    model = random_model(small_config(hidden=64, heads=4, kv_heads=2, head_dim=16), 23)
    taps, ids = random_text(model.config, 50)
    anchors = torch.arange(0, 50, 7)
    with torch.no_grad():
        exact, rough = (model.forward_train(taps, ids, anchors, dtype=d) for d in (None, torch.bfloat16))
    assert rough.logits.dtype == torch.bfloat16 and rough.hidden.dtype == torch.float32
    assert (exact.hidden - rough.hidden).abs().mean() < 0.02 * exact.hidden.abs().mean()


def test_tap_scale_leaves_the_function_after_folding():
    model = random_model(CONFIGS[0], 24)
    taps, ids = random_text(model.config, 30)
    taps = taps * torch.logspace(-1, 3, model.config.tap_width)
    model.set_tap_scale(taps)
    with tempfile.TemporaryDirectory() as folder:
        dspark.save(model, folder, torch.float32)
        loaded = dspark.load(folder, model.table)
    anchors = torch.tensor([3, 29])
    close(loaded.forward_base(taps, ids, anchors, None), model.forward_base(taps, ids, anchors, None))
    assert (loaded.tap_scale == 1).all() and not torch.equal(loaded.fc.weight, model.fc.weight)


def test_anchors_must_ascend_and_have_taps():
    model = random_model(CONFIGS[0], 25)
    taps, ids = random_text(model.config, 10)
    for anchors in ([3, 2], [10], [-1, 2], []):
        with raises("ascending"):
            model.forward_base(taps, ids, torch.tensor(anchors, dtype=torch.int64), None)
    with raises("8 rows of taps"):
        model.forward_base(taps[:8], ids, torch.tensor([9]), None)
    model.forward_base(taps[:9], ids, torch.tensor([9]), None)


# -- names, shapes, files

PUBLISHED_2_6B = DSparkConfig(
    hidden=2048, layers=5, heads=32, kv_heads=8, head_dim=64, intermediate=6144, rms_norm_eps=1e-5, vocab_size=128000,
    rope_theta=1e7, block_size=9, mask_token_id=125017, target_layer_ids=(2, 9, 17, 21, 27), num_target_layers=30,
    markov_rank=256)


def published_shapes() -> dict[str, tuple[int, ...]]:
    """Of LFM2.5-2.6B-DSpark, as listed."""
    shapes = {"fc.weight": (2048, 10240), "hidden_norm.weight": (2048,), "norm.weight": (2048,),
              "markov_head.markov_w1.weight": (128000, 256), "markov_head.markov_w2.weight": (128000, 256),
              "confidence_head.proj.weight": (1, 2304), "confidence_head.proj.bias": (1,)}
    for i in range(5):
        layer = {"input_layernorm": (2048,), "post_attention_layernorm": (2048,), "self_attn.q_proj": (2048, 2048),
                 "self_attn.o_proj": (2048, 2048), "self_attn.k_proj": (512, 2048), "self_attn.v_proj": (512, 2048),
                 "self_attn.q_norm": (64,), "self_attn.k_norm": (64,), "mlp.gate_proj": (6144, 2048),
                 "mlp.up_proj": (6144, 2048), "mlp.down_proj": (2048, 6144)}
        shapes |= {f"layers.{i}.{name}.weight": shape for name, shape in layer.items()}
    return shapes


def test_published_model_by_name_shape_and_count():
    with torch.device("meta"):
        model = DSpark(PUBLISHED_2_6B, torch.empty(128000, 2048))
    assert {name: tuple(value.shape) for name, value in model.state_dict().items()} == published_shapes()
    assert sum(p.numel() for p in model.parameters()) == 327_707_521


def test_config_has_the_published_keys():
    keys = PUBLISHED_2_6B.to_json()
    assert keys["architectures"] == ["Lfm2DSparkDraftModel"] and keys["model_type"] == "qwen3"
    assert keys["rope_is_neox_style"] is False and keys["block_size"] == 9
    assert keys["dflash_config"] == {"mask_token_id": 125017, "target_layer_ids": [2, 9, 17, 21, 27],
                                     "num_target_layers": 30}
    assert (keys["markov_rank"], keys["markov_head_type"], keys["enable_confidence_head"]) == (256, "vanilla", True)
    assert "draft_vocab_size" not in keys
    for config in CONFIGS + (PUBLISHED_2_6B,):
        assert DSparkConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_config_refuses_what_is_not_computed():
    keys = CONFIGS[0].to_json()
    with raises("rope_is_neox_style"):
        DSparkConfig.from_json(keys | {"rope_is_neox_style": True})
    with raises("markov_head_type", "gated"):
        DSparkConfig.from_json(keys | {"markov_head_type": "gated"})
    with raises("block_size", "missing"):
        DSparkConfig.from_json({name: value for name, value in keys.items() if name != "block_size"})
    with raises("target_layer_ids"):
        small_config(target_layer_ids=(1, 11))
    with raises("mask_token_id"):
        small_config(mask_token_id=61)


def test_files_round_trip():
    from safetensors.torch import load_file, save_file

    for seed, config in enumerate(CONFIGS):
        model = random_model(config, 30 + seed)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            dspark.save(model, folder, torch.float32)
            same = dspark.load(folder, model.table).state_dict()
            assert same.keys() == model.state_dict().keys()
            assert all(torch.equal(same[n], value) for n, value in model.state_dict().items())
            assert "table" not in same and ("d2t" in same) == (config.draft_vocab_size is not None)

            dspark.save(model, folder)  # bf16
            tensors = load_file(folder / "model.safetensors")
            assert all(value.dtype == (torch.int64 if n == "d2t" else torch.bfloat16) for n, value in tensors.items())
            save_file({f"model.{n}": value for n, value in tensors.items()}, folder / "model.safetensors")
            rounded = dspark.load(folder, model.table).state_dict()
            assert all(torch.equal(rounded[n], value.bfloat16().float()) for n, value in model.state_dict().items()
                       if n != "d2t")


def test_files_name_every_fault():
    from safetensors.torch import load_file, save_file

    model = random_model(CONFIGS[1], 40)
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "model.safetensors"
        dspark.save(model, name)
        tensors = load_file(path)
        del tensors["norm.weight"]
        tensors["lm_head.weight"] = torch.zeros(1)
        tensors["fc.weight"] = tensors["fc.weight"][:, :-1].contiguous()
        save_file(tensors, path)
        with raises("norm.weight is missing", "lm_head.weight is unknown", "fc.weight is (36, 107)", "(36, 108)"):
            dspark.load(name, model.table)
        del tensors["d2t"]
        save_file(tensors, path)
        with raises("d2t", "missing"):
            dspark.load(name, model.table)
    with raises("table"):
        DSpark(CONFIGS[0], torch.zeros(60, 36))
    with raises("different tokens"):
        DSpark(CONFIGS[4], torch.zeros(61, 24), torch.tensor([1, 2, 3, 4, 4]))


# -- targets and loss


def test_block_targets():
    ids = torch.tensor([7, 8, 9, 10, 11, 20, 21, 22])  # two sequences: 5 and 3 tokens
    segments = torch.tensor([0] * 5 + [1] * 3)
    answer = torch.tensor([0, 0, 1, 1, 1, 0, 1, 1])
    top_ids = torch.arange(8)[:, None] * 10 + torch.arange(2)
    top_logits = torch.tensor([[2.0, 1.0]] * 8)
    log_sum_exp = torch.full((8,), 2.5)
    got = dspark.block_targets(ids, torch.tensor([2, 6]), 3, answer, top_ids, top_logits, log_sum_exp, segments)
    assert got.labels[0, :2].tolist() == [10, 11] and got.labels[1, 0] == 22
    assert got.valid.tolist() == [[True, True, False], [True, False, False]]
    assert got.teacher.ids[0].tolist() == [[20, 21], [30, 31], [40, 41]]
    close(got.teacher.probabilities[0, 0], [math.exp(-0.5), math.exp(-1.5)])
    # Transcripts have a last token without a row, and logits that are log-probabilities.
    short = dspark.block_targets(ids[:5], torch.tensor([2]), 3, answer[:5], top_ids[:4], top_logits[:4] - 2.5)
    assert short.labels[0, :2].tolist() == [10, 11] and short.valid.tolist() == [[True, True, False]]
    assert short.teacher.ids[0, :2].tolist() == [[20, 21], [30, 31]]
    close(short.teacher.probabilities[0, :2], got.teacher.probabilities[0, :2])


def outputs_of(logits: torch.Tensor, confidence: torch.Tensor) -> dspark.DraftOutputs:
    return dspark.DraftOutputs(torch.zeros(0), logits, logits, confidence)


def straight_loss(logits, confidence, target, labels, valid, tokens, decay):
    """Terms of the published loss in loops; target [A, B, V] probabilities, tokens: of each draft row."""
    sums = {"hard": [0, 0], "distance": [0, 0], "confidence": [0, 0]}
    for a in range(len(labels)):
        for k in range(len(labels[a])):
            if not valid[a][k]:
                continue
            w = math.exp(-k / decay)
            draft = np.zeros(len(target[a][k]))
            draft[tokens] = np.exp(logits[a][k] - logits[a][k].max())
            draft /= draft.sum()
            distance = np.abs(draft - target[a][k]).sum()
            accept, c = 1 - distance / 2, 1 / (1 + math.exp(-confidence[a][k]))
            terms = {"distance": distance, "confidence": -accept * math.log(c) - (1 - accept) * math.log(1 - c)}
            if labels[a][k] in tokens:
                terms["hard"] = -math.log(draft[labels[a][k]])
            for name, term in terms.items():
                sums[name][0] += w * term
                sums[name][1] += w
    return {name: total / weight for name, (total, weight) in sums.items()}


def random_loss_case(vocab, tokens, seed):
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(4, 3, len(tokens), generator=rng) * 2
    confidence = torch.randn(4, 3, generator=rng)
    target_logits = torch.randn(4, 3, vocab, generator=rng) * 3
    labels = torch.randint(0, vocab, (4, 3), generator=rng)
    valid = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]).bool()
    t2d = torch.full((vocab,), -1)
    t2d[tokens] = torch.arange(len(tokens))
    return logits, confidence, target_logits, labels, valid, t2d


def test_loss_is_the_published_one():
    for seed, tokens in enumerate((torch.arange(12), torch.tensor([3, 0, 11, 5, 7]))):
        logits, confidence, target_logits, labels, valid, t2d = random_loss_case(12, tokens, seed)
        expected = straight_loss(logits.numpy(), confidence.numpy(), target_logits.softmax(-1).numpy(),
                                 labels.tolist(), valid.tolist(), tokens.tolist(), 4.0)
        total, numbers = dspark.loss(outputs_of(logits, confidence), labels, valid, target_logits, t2d)
        for name, value in expected.items():
            close(numbers[name], value, 1e-5)
        close(total, 0.1 * expected["hard"] + 0.9 * expected["distance"] + expected["confidence"], 1e-5)


def test_top_teacher_is_the_whole_one_when_nothing_is_left_out():
    for seed, tokens in enumerate((torch.arange(12), torch.tensor([3, 0, 11, 5, 7]))):
        logits, confidence, target_logits, labels, valid, t2d = random_loss_case(12, tokens, 5 + seed)
        top = target_logits.softmax(-1).topk(12)
        whole = dspark.loss(outputs_of(logits, confidence), labels, valid, target_logits, t2d)
        parts = dspark.loss(outputs_of(logits, confidence), labels, valid, TopTeacher(top.indices, top.values), t2d)
        for name in whole[1]:
            close(parts[1][name], whole[1][name], 1e-5)
        fewer = target_logits.softmax(-1).topk(6)
        bound = dspark.loss(outputs_of(logits, confidence), labels, valid, TopTeacher(fewer.indices, fewer.values), t2d)
        assert bound[1]["distance"] <= whole[1]["distance"] + 1e-6


def test_loss_falls_in_training():
    for weights in (dspark.PUBLISHED_LOSS, dspark.SOFT_LOSS):
        model = random_model(small_config(draft_vocab_size=30), 50)
        taps, ids = random_text(model.config, 60)
        anchors = torch.arange(10, 58, 3)
        logits = torch.randn(60, 61) * 3
        top = logits.topk(16)
        aims = dspark.block_targets(ids, anchors, 6, torch.ones(60), top.indices, top.values, logits.logsumexp(-1))
        optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
        totals = []
        for _ in range(30):
            out = model.forward_train(taps, ids, anchors)
            total, _ = dspark.loss(out, aims.labels, aims.valid, aims.teacher, model.t2d, weights)
            optimiser.zero_grad()
            total.backward()
            optimiser.step()
            totals.append(float(total.detach()))
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
        assert totals[-1] < 0.8 * totals[0], totals

"""The torch network against transformers, its batches and caches against itself."""

import pytest
import torch
from transformers import AutoModelForCausalLM, Lfm2Config, LlamaConfig

from espalier_tools.train.drafter.target import Generator, Request
from espalier_tools.train.network import Linear, Network, Shape, elementwise

CONFIGS = {
    "llama": LlamaConfig(
        vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=6,
        num_key_value_heads=2, head_dim=8, tie_word_embeddings=True, rope_parameters={"rope_theta": 5e3, "rope_type": "default"},
    ),
    "lfm2": Lfm2Config(
        vocab_size=97, hidden_size=48, block_ff_dim=80, intermediate_size=80, block_auto_adjust_ff_dim=False,
        num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=3, full_attn_idxs=[1, 3], tie_word_embeddings=True,
        rope_parameters={"rope_theta": 5e3, "rope_type": "default"},
    ),
}


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    monkeypatch.setattr(Linear, "products", torch.float32)


@pytest.fixture(params=CONFIGS)
def pair(request):
    torch.manual_seed(3)
    theirs = AutoModelForCausalLM.from_config(CONFIGS[request.param], attn_implementation="eager").eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, 0.3 if parameter.dim() == 1 else 0, 0.3)
    ours = Network(Shape.from_transformers(theirs.config)).eval()
    state = {name.removeprefix("model."): x for name, x in theirs.state_dict().items() if name != "lm_head.weight"}
    ours.load_state_dict(state)
    return ours.requires_grad_(False), theirs


def test_equals_transformers_with_its_taps(pair):
    ours, theirs = pair
    ids = torch.randint(0, 97, (2, 19))
    with torch.no_grad():
        wanted = theirs(ids, output_hidden_states=True)
    hidden, taps = ours(ids, (0, 1))
    torch.testing.assert_close(ours.logits(hidden), wanted.logits, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(taps[0], wanted.hidden_states[1], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(taps[1], wanted.hidden_states[2], rtol=1e-4, atol=1e-4)


def test_sequences_in_one_row_do_not_see_each_other(pair):
    ours, _ = pair
    lengths = [5, 1, 2, 13, 3]
    ids = torch.randint(0, 97, (1, sum(lengths)))
    packed, _ = ours(ids, lengths=lengths)
    for part, rows in zip(ids.split(lengths, dim=1), packed.split(lengths, dim=1)):
        torch.testing.assert_close(rows, ours(part)[0], rtol=1e-5, atol=1e-5)


def test_fused_loops_compute_what_they_compute_apart(pair, monkeypatch):
    network, _ = pair
    ids = torch.randint(0, 97, (1, 29), generator=torch.Generator().manual_seed(2))
    apart, _ = network(ids, lengths=[11, 18])
    monkeypatch.setattr(elementwise, "fused", True)
    fused, _ = network(ids, lengths=[11, 18])
    torch.testing.assert_close(fused, apart, atol=2e-5, rtol=2e-5)


def test_cached_calls_equal_one_call(pair):
    ours, _ = pair
    ids = torch.randint(0, 97, (2, 12))
    whole, _ = ours(ids)
    caches = ours.cache(2, 16)
    found = []
    for begin, end in ((0, 1), (1, 6), (6, 7), (7, 12)):
        starts = torch.full((2,), begin)
        found.append(ours.extend(ids[:, begin:end], caches, torch.arange(2), starts)[0])
    torch.testing.assert_close(torch.cat(found, dim=1), whole, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def greedy(model, prompt):
    """Without transformers' cache, which is wrong for LFM2 prompts shorter than the convolution."""
    ids = list(prompt)
    while len(ids) < 20 and (len(ids) == len(prompt) or ids[-1] != 7):
        ids.append(int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    return ids


def test_generation_in_slots_equals_greedy_of_transformers(pair):
    ours, theirs = pair
    prompts = [torch.randint(0, 97, (n,)).tolist() for n in (3, 9, 1, 5, 2)]
    generator = Generator(ours, (1,), {7}, slots=2, length=20, seed=0)
    found = {tuple(t.ids[: t.prompt_length]): t for t in generator.run(Request(p, "chat") for p in prompts)}
    for prompt in prompts:
        wanted = greedy(theirs, prompt)
        transcript = found[tuple(prompt)]
        assert transcript.ids.tolist() == wanted
        _, taps = ours(torch.tensor([wanted[:-1]]), (1,))
        torch.testing.assert_close(transcript.tap_rows().float(), taps[0][0], rtol=2e-2, atol=2e-2)
        assert transcript.top_ids[transcript.prompt_length - 1 :, 0].tolist() == wanted[len(prompt) :]


def test_a_training_step_moves_every_parameter():
    shape = Shape("lfm2", 64, 32, 48, 4, 2, 8, ("conv", "full_attention"), 1e4)
    from espalier_tools.train.nano.model import initialise

    network = Network(shape)
    initialise(network, 1)
    hidden, _ = network(torch.randint(0, 64, (1, 30)), lengths=[10, 20])
    network.logits(hidden).square().mean().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in network.parameters())

"""One command from a target to its drafter, on a target of random weights: in legs, and again from what is there."""

import json

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from espalier_tools.train.drafter import make as making
from espalier_tools.train.drafter import dspark, text
from espalier_tools.train.drafter.target import load_network
from espalier_tools.train.drafter.train import Recipe, Trainer
from espalier_tools.train.nano.text import train_tokenizer

RECIPE = Recipe(block=4, markov_rank=4, draft_vocab=50, sequences=2, anchors=8, steps=24)
QUESTIONS = [f"What is {number} and {word}?" for number in range(40) for word in ("tea", "rain")]


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    folder = tmp_path_factory.mktemp("target")
    tokenizer = train_tokenizer(QUESTIONS)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=6, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, tie_word_embeddings=True, initializer_range=0.3,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(text, "LENGTH", 48)


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.jsonl"
    lines = [{"messages": [{"role": "user", "content": question}]} for question in QUESTIONS]
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


def make(target, folder, prompts, minutes):
    return making.make(target, folder, RECIPE, prompts, 1, minutes)


def test_a_drafter_is_made_in_legs_and_loads(target, small, prompts, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "out"
    assert not make(target, folder, prompts, 0)  # a leg without time does nothing and says so
    steps = []
    loss = Trainer.loss

    def stopping(self, step):
        steps.append(step)
        self.run._leg_over = len(steps) == 10
        return loss(self, step)

    monkeypatch.setattr(Trainer, "loss", stopping)
    assert not make(target, folder, prompts, 5)
    assert make(target, folder, prompts, 5)
    assert steps == list(range(RECIPE.steps))
    assert "drafter tree + lookup" in capsys.readouterr().out

    network, _ = load_network(target)
    drafter = dspark.load(folder / "drafter", network.embed_tokens.weight)
    assert (drafter.config.block_size, drafter.config.draft_vocab_size) == (4, 50)
    assert drafter.config.target_layer_ids == (1, 2, 3)
    assert drafter.tap_scale.eq(1).all()  # folded into fc

    once = tmp_path / "once"
    assert make(target, once, prompts, 5)
    for part in ("text/train-0000.npz", "drafter/model.safetensors"):  # legs give what one piece gives
        assert (once / part).read_bytes() == (folder / part).read_bytes(), part


def test_held_out_prompts_are_not_trained_on(target, small, prompts, tmp_path):
    maker = making.Maker(target, tmp_path / "out", RECIPE, prompts)
    (train,) = maker.text(1, float("inf"))
    asked = {tuple(t.ids[: t.prompt_length]) for t in text.read_shard(train)}
    held = {tuple(t.ids[: t.prompt_length]) for t in maker.test_texts()}
    assert asked and held and not asked & held

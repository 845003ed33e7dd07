"""Transcripts of a target as files, prompts of a file, and the rows of the head that a training step computes."""

import itertools
import json

import numpy as np
import pytest
import torch

from espalier_tools.train.drafter import requests, text
from espalier_tools.train.drafter.target import Transcript, default_taps
from espalier_tools.train.drafter.train import Candidates, Recipe, draft_vocabulary


def transcript(rng, rows, prompt, kind):
    return Transcript(
        ids=rng.integers(0, 99, rows + 1).astype(np.int32),
        prompt_length=prompt,
        taps=rng.integers(0, 2**16, (rows, 12)).astype(np.uint16),
        top_ids=rng.integers(0, 99, (rows, 16)).astype(np.int32),
        top_logits=rng.standard_normal((rows, 16)).astype(np.float16),
        kind=kind,
    )


def test_a_shard_comes_back(tmp_path):
    rng = np.random.default_rng(1)
    written = [transcript(rng, rows, prompt, kind) for rows, prompt, kind in ((7, 3, "chat"), (1, 1, "code"), (30, 20, "copy"))]
    text.write_shard(tmp_path / "train-0000.npz", written)
    for one, other in zip(written, text.read_shard(tmp_path / "train-0000.npz"), strict=True):
        assert (one.prompt_length, one.kind) == (other.prompt_length, other.kind)
        for name in ("ids", "taps", "top_ids", "top_logits"):
            assert np.array_equal(getattr(one, name), getattr(other, name))


def test_taps_spread_over_the_depth_and_leave_out_the_last_layer():
    assert default_taps(30) == (1, 14, 27) and default_taps(8) == (1, 3, 5)
    for layers in range(5, 60):
        taps = default_taps(layers)
        assert len(set(taps)) == 3 and taps[-1] < layers - 1


def test_draft_vocabulary_holds_the_most_frequent_tokens():
    rng = np.random.default_rng(2)
    one = transcript(rng, 50, 10, "chat")
    one.ids[10:40] = 77
    chosen = draft_vocabulary([one], 5, 99).tolist()
    assert 77 in chosen and len(set(chosen)) == 5 and chosen == sorted(chosen)
    assert len(set(draft_vocabulary([one], 90, 99).tolist())) == 90  # more than the text has


def test_candidates_keep_the_expected_sum_over_the_vocabulary():
    logits = torch.randn(400, generator=torch.Generator().manual_seed(1))
    named = torch.tensor([3, 3, -1, 17, 200])
    sums = []
    for seed in range(400):
        c = Candidates(named, 400, 60, torch.Generator().manual_seed(seed))
        assert set(c.rows.tolist()) >= {3, 17, 200} and len(c.rows) == 63 and c.place[-1] == -1
        assert torch.equal(c.rows[c.place[torch.tensor([3, 17, 200])]], torch.tensor([3, 17, 200]))
        sums.append((logits[c.rows] + c.correction).exp().sum())
    assert torch.stack(sums).mean() == pytest.approx(float(logits.exp().sum()), rel=0.02)


def test_every_row_named_leaves_nothing_to_draw():
    c = Candidates(torch.arange(6), 6, 4, torch.Generator().manual_seed(1))
    assert c.rows.tolist() == [0, 1, 2, 3, 4, 5] and c.correction.tolist() == [0] * 6


def test_recipe_defaults_are_those_of_the_command_line(monkeypatch):
    from espalier_tools.train import __main__ as command

    monkeypatch.setattr("sys.argv", ["train", "drafter", "--target", "x"])
    options = command.arguments()
    recipe = Recipe()
    assert (options.layers, options.block, options.draft_vocab) == (recipe.layers, recipe.block, recipe.draft_vocab)
    assert options.steps == recipe.steps


class Tokenizer:
    """Prompts as the characters of their last message."""

    def apply_chat_template(self, messages, tools=None, **_):
        return [ord(c) for c in messages[-1]["content"]]


def first(source, split, shard, count=40):
    return list(itertools.islice(requests.requests(source, split, shard, source.shares), count))


def test_prompts_of_a_file_are_split_and_drawn_alike_every_time(tmp_path):
    path = tmp_path / "prompts.jsonl"
    lines = [{"messages": [{"role": "user", "content": f"question {i}"}], "class": ("chat", "code")[i % 2]} for i in range(200)]
    path.write_text("\n".join(map(json.dumps, lines)))
    source = requests.FilePrompts(Tokenizer(), path)
    assert source.tests.keys() == {"chat", "code"}
    train, test = first(source, "train", 0, 150), first(source, "test", 0, 150)
    assert not {tuple(r.prompt) for r in train} & {tuple(r.prompt) for r in test}
    assert train == first(source, "train", 0, 150) != first(source, "train", 1, 150)
    assert {r.temperature for r in test} == {0.0} and 15 < sum(r.temperature > 0 for r in train) < 65


@pytest.mark.parametrize(
    "content, message",
    [
        ('{"messages": ', "prompts.jsonl:1: not JSON"),
        ('{"prompt": "x"}', 'prompts.jsonl:1: expected {"messages"'),
        ('{"messages": [{"content": "x"}]}', "prompts.jsonl:1: expected"),
        ('{"messages": [{"role": "user", "content": "x"}]}', "no .* prompt of class 'chat'; give some twenty"),
    ],
)
def test_a_file_that_holds_no_prompts_is_refused_by_line(tmp_path, content, message):
    (tmp_path / "prompts.jsonl").write_text(content)
    with pytest.raises(ValueError, match=message):
        requests.FilePrompts(Tokenizer(), tmp_path / "prompts.jsonl")

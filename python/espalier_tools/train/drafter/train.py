"""Trains a DSpark drafter on the text of its target, in legs that go on where the last one ended."""

import collections
import dataclasses
import json
import pathlib
import random

import numpy as np
import torch
from torch import Tensor

from espalier_tools.train.drafter import dspark
from espalier_tools.train.drafter.dspark import DSpark, DSparkConfig, LossWeights
from espalier_tools.train.drafter.target import Transcript
from espalier_tools.train.drafter.text import read_shard
from espalier_tools.train.files import write_json
from espalier_tools.train.network import Network
from espalier_tools.train.run import Run, Schedule

TEACHER_TOP = 8  # of the candidates that transcripts hold
NEGATIVES = 2048  # rows of the head that a step adds to those of its labels and teachers


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What a drafter is and how it is trained; small, for small targets."""

    layers: int = 1
    block: int = 5
    markov_rank: int = 64
    draft_vocab: int | None = 16384  # at most the target's
    sequences: int = 4  # of a step
    anchors: int = 40  # of a sequence
    steps: int = 18000
    rate: float = 1e-3
    soft_until: float = 0.5  # of the steps: cross-entropy with the target alone; then the published mix, half of each
    seed: int = 7


def config_for(network: Network, recipe: Recipe, taps: tuple[int, ...], mask_token_id: int) -> DSparkConfig:
    shape = network.shape
    return DSparkConfig(
        hidden=shape.hidden,
        layers=recipe.layers,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        intermediate=shape.intermediate,
        rms_norm_eps=shape.norm_eps,
        vocab_size=shape.vocab,
        rope_theta=shape.rope_theta,
        block_size=recipe.block,
        mask_token_id=mask_token_id,
        target_layer_ids=taps,
        num_target_layers=len(shape.layer_types),
        markov_rank=recipe.markov_rank,
        draft_vocab_size=vocabulary_size(recipe, shape.vocab),
    )


def vocabulary_size(recipe: Recipe, vocab: int) -> int | None:
    """None where everything can be drafted."""
    return recipe.draft_vocab if recipe.draft_vocab and recipe.draft_vocab < vocab else None


def mask_token(tokenizer) -> int:
    """A token that stands in no text of a chat. ValueError if the tokenizer has none of those that are known."""
    vocabulary = tokenizer.get_vocab()
    for name in ("<|mask|>", "<|endoftext|>", "<pad>", "<|pad|>", "<unk>"):
        if name in vocabulary and vocabulary[name] != tokenizer.eos_token_id:
            return vocabulary[name]
    raise ValueError("the tokenizer has no token that could be a drafter's mask: looked for <|mask|>, <|endoftext|>, <pad>")


def draft_vocabulary(transcripts: list[Transcript], size: int, vocab: int) -> Tensor:
    """The tokens that answers hold most often, [size] int64 ascending; filled up with the lowest ids."""
    counts = collections.Counter()
    for transcript in transcripts:
        counts.update(transcript.ids[transcript.prompt_length :].tolist())
    chosen = [token for token, _ in counts.most_common(size)]
    chosen += [token for token in range(vocab) if token not in counts][: size - len(chosen)]
    return torch.tensor(sorted(chosen))


class Candidates:
    """The rows of the head that a step computes: all that its labels and teachers name, and a random part of the rest.

    `correction` is added to their logits: a random row stands for all that were not drawn, so that the sum over the
    draft vocabulary keeps its expectation. A third of the head's cost, and the vocabulary may be larger.
    """

    def __init__(self, named: Tensor, rows: int, random_rows: int, generator: torch.Generator):
        chosen = torch.zeros(rows, dtype=torch.bool)
        chosen[named[named >= 0]] = True
        others = (~chosen).nonzero().flatten()
        drawn = others[torch.randperm(len(others), generator=generator)[:random_rows]]
        self.rows = torch.cat((chosen.nonzero().flatten(), drawn))
        self.correction = torch.zeros(len(self.rows))
        if len(drawn):
            self.correction[-len(drawn) :] = float(np.log(len(others) / len(drawn)))
        self.place = torch.full((rows + 1,), -1)  # one more, so that -1 (no row) stays -1
        self.place[self.rows] = torch.arange(len(self.rows))


class Example:
    """A step's transcripts as one packed sequence with its anchors."""

    def __init__(self, transcripts: list[Transcript], anchors: int, block: int, rng: random.Random):
        ids, taps, answers, segments, top_ids, top_logits, places = [], [], [], [], [], [], []
        begin = 0
        for number, t in enumerate(transcripts):
            rows = len(t.ids)
            ids.append(torch.from_numpy(t.ids))
            taps += [t.tap_rows(), t.tap_rows()[:1]]  # the last token has no row; no block sees one there
            answers.append(torch.arange(rows) >= t.prompt_length)
            segments.append(torch.full((rows,), number))
            top_ids += [torch.from_numpy(t.top_ids[:, :TEACHER_TOP])] + [torch.zeros(1, TEACHER_TOP, dtype=torch.int32)]
            top_logits += [torch.from_numpy(t.top_logits[:, :TEACHER_TOP])] + [torch.zeros(1, TEACHER_TOP).half()]
            possible = range(max(1, t.prompt_length - 1), rows - 1)
            places += [begin + i for i in sorted(rng.sample(possible, min(anchors, len(possible))))]
            begin += rows
        self.ids, self.taps, self.segments = torch.cat(ids), torch.cat(taps), torch.cat(segments)
        self.anchors = torch.tensor(places)
        self.targets = dspark.block_targets(
            self.ids, self.anchors, block, torch.cat(answers), torch.cat(top_ids), torch.cat(top_logits),
            segments=self.segments,
        )


class Trainer:
    def __init__(self, folder: pathlib.Path, network: Network, mask_token_id: int, shards: list[pathlib.Path], recipe: Recipe):
        self.recipe, self.folder = recipe, folder
        self.epoch, self.permutation = -1, []
        self.transcripts = [t for path in shards for t in read_shard(path) if len(t.ids) - t.prompt_length > 2]
        if not self.transcripts:
            raise ValueError(f"{shards[0].parent}: no answer of three tokens or more in {len(shards)} shards")
        taps = tuple(json.loads((shards[0].parent / "text.json").read_text())["taps"])
        config = config_for(network, recipe, taps, mask_token_id)
        vocabulary = None
        if config.draft_vocab_size is not None:
            vocabulary = self._vocabulary(network.shape.vocab)
        torch.manual_seed(recipe.seed)
        self.model = DSpark(config, network.embed_tokens.weight, vocabulary)
        self.model.set_tap_scale(torch.cat([t.tap_rows() for t in self.transcripts[:64]]))
        schedule = Schedule(steps=recipe.steps, rate=recipe.rate, warmup=20, decay_from=0.6, average=0.998)
        tokens = sum(len(t.ids) - t.prompt_length for t in self.transcripts)
        about = {"task": "drafter", "transcripts": len(self.transcripts), "answer_tokens": tokens}
        self.run = Run(folder, self.model, schedule, {**about, **dataclasses.asdict(recipe)})

    def _vocabulary(self, vocab: int) -> Tensor:
        """That of the run's first leg, whatever text there is now."""
        path = self.folder / "draft_vocabulary.json"
        if not path.exists():
            write_json(path, draft_vocabulary(self.transcripts, self.recipe.draft_vocab, vocab).tolist())
        return torch.tensor(json.loads(path.read_text()))

    def train(self, leg_minutes: float) -> bool:
        return self.run.train(self.loss, leg_minutes)

    def loss(self, step: int) -> tuple[Tensor, dict[str, float]]:
        recipe, rng = self.recipe, random.Random(f"{self.recipe.seed}/{step}")
        example = Example(self._chosen(step), recipe.anchors, recipe.block, rng)
        targets = example.targets
        t2d = self.model.t2d
        named = torch.cat((t2d[targets.teacher.ids[targets.valid]].flatten(), t2d[targets.labels[targets.valid]]))
        generator = torch.Generator().manual_seed(step)
        candidates = Candidates(named, self.model.config.draft_rows, NEGATIVES, generator)
        outputs = self.model.forward_train(example.taps, example.ids, example.anchors, example.segments, candidates.rows)
        outputs.logits = outputs.logits.float() + candidates.correction
        total, numbers = dspark.loss(
            outputs, targets.labels, targets.valid, targets.teacher, candidates.place[t2d], self._weights(step)
        )
        accuracy = dspark.slot_accuracy(outputs, targets.labels, targets.valid, candidates.place[t2d])
        return total, numbers | {f"right{k}": float(accuracy[k]) for k in range(min(4, recipe.block))}

    def _chosen(self, step: int) -> list[Transcript]:
        """Each epoch is a permutation of the transcripts."""
        count, size = self.recipe.sequences, len(self.transcripts)
        chosen = []
        for i in range(step * count, (step + 1) * count):
            epoch, place = divmod(i, size)
            chosen.append(self.transcripts[self._order(epoch)[place]])
        return chosen

    def _order(self, epoch: int) -> list[int]:
        if self.epoch != epoch:
            self.epoch, self.permutation = epoch, list(range(len(self.transcripts)))
            random.Random(f"{self.recipe.seed}/epoch/{epoch}").shuffle(self.permutation)
        return self.permutation

    def _weights(self, step: int) -> LossWeights:
        if step < self.recipe.soft_until * self.recipe.steps:
            return LossWeights(hard=0.0, distance=0.0, soft=1.0, confidence=0.3)
        return LossWeights(hard=0.05, distance=0.45, soft=0.5, confidence=0.3)

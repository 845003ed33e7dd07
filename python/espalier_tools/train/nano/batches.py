"""Batches for nano: sequences of the generator one behind the other, without padding.

What a step gets follows from its number and the seed alone, so a run goes on anywhere.
"""

import dataclasses
import itertools
import random
from collections.abc import Callable

import torch
from torch import Tensor

from espalier_tools.train.nano.text import Encoded

DECISION_WEIGHT = 5.0  # of a turn's first token: it says whether to call, and is one of twenty-five
LONGEST = 1000  # tokens of a sequence; longer ones are left out


@dataclasses.dataclass
class Batch:
    ids: Tensor  # [1, T]
    lengths: list[int]  # of the sequences, T together
    places: Tensor  # [n]: rows whose next token is a label
    labels: Tensor  # [n]
    weights: Tensor  # [n] of the labels in the loss
    hint_places: Tensor  # [m]: rows that shall know of a function early
    hints: Tensor  # [m]: a token of its name

    @staticmethod
    def of(sequences: list[Encoded]) -> "Batch":
        ids = torch.tensor([token for sequence in sequences for token in sequence.ids])
        flags = [[False, *sequence.trained[1:]] for sequence in sequences]  # nothing is before the first
        trained = torch.tensor([flag for sequence in flags for flag in sequence])
        labelled = trained.nonzero().flatten()
        first = ~trained[labelled - 1]
        weights = torch.where(first, DECISION_WEIGHT, 1.0)
        lengths = [len(sequence.ids) for sequence in sequences]
        starts = itertools.accumulate(lengths, initial=0)
        hints = [(start + at, token) for start, sequence in zip(starts, sequences) for at, token in sequence.hints]
        hint_places, hint_tokens = torch.tensor(hints, dtype=torch.long).view(-1, 2).unbind(1)
        return Batch(ids.unsqueeze(0), lengths, labelled - 1, ids[labelled], weights, hint_places, hint_tokens)


class Batches:
    """`example(index, progress)` gives a sequence; `progress` says how far the training is, 1 at its end."""

    def __init__(self, example: Callable[[int, float], Encoded], tokens: int, steps: int, seed: int):
        self.example, self.tokens, self.steps, self.seed = example, tokens, steps, seed

    def batch(self, step: int, rank: int = 0) -> Batch:
        """At least `tokens` tokens, other ones for each process of a run."""
        rng = random.Random(f"{self.seed}/{step}/{rank}" if rank else f"{self.seed}/{step}")
        sequences, tokens = [], 0
        while tokens < self.tokens:
            sequence = self.example(rng.getrandbits(48), step / self.steps)
            if len(sequence.ids) <= LONGEST:
                sequences.append(sequence)
                tokens += len(sequence.ids)
        return Batch.of(sequences)

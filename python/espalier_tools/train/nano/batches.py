"""Batches for nano: sequences of the generator one behind the other, without padding.

What a step gets follows from its number and the seed alone, so a run goes on anywhere.
"""

import dataclasses
import random
from collections.abc import Callable

import torch
from torch import Tensor

Sequence = tuple[list[int], list[bool]]  # token ids, and which of them the loss asks for
LONGEST = 1000  # tokens of a sequence; longer ones are left out


@dataclasses.dataclass
class Batch:
    ids: Tensor  # [1, T]
    lengths: list[int]  # of the sequences, T together
    places: Tensor  # [n]: rows whose next token is a label
    labels: Tensor  # [n]

    @staticmethod
    def of(sequences: list[Sequence]) -> "Batch":
        ids = torch.tensor([token for tokens, _ in sequences for token in tokens])
        trained = torch.tensor([flag for _, flags in sequences for flag in [False, *flags[1:]]])  # none before the first
        labelled = trained.nonzero().flatten()
        return Batch(ids.unsqueeze(0), [len(tokens) for tokens, _ in sequences], labelled - 1, ids[labelled])


class Batches:
    """`example(index, progress)` gives a sequence; `progress` in 0..1 says how far the training is."""

    def __init__(self, example: Callable[[int, float], Sequence], tokens: int, steps: int, seed: int):
        self.example, self.tokens, self.steps, self.seed = example, tokens, steps, seed

    def batch(self, step: int) -> Batch:
        """At least `tokens` tokens."""
        rng = random.Random(f"{self.seed}/{step}")
        sequences, tokens = [], 0
        while tokens < self.tokens:
            sequence = self.example(rng.getrandbits(48), step / self.steps)
            if len(sequence[0]) <= LONGEST:
                sequences.append(sequence)
                tokens += len(sequence[0])
        return Batch.of(sequences)

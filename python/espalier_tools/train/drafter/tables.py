"""Proposals that cost nothing to train: text seen before in this conversation, and counts over a corpus.

A drafter has to beat both of them together, in tokens and in time.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from espalier_tools.train.drafter.tree import DraftTree, best_first


# How often the token after a match of so many tokens is the target's own next one: 103,000 positions of greedy and
# sampled answers of SmolLM2-135M. Further tokens of the path follow the same table, since each makes the match longer.
MATCH_PROBABILITIES = {2: 0.52, 3: 0.61, 4: 0.71, 5: 0.76, 6: 0.82, 7: 0.84, 9: 0.86, 10: 0.9, 16: 0.93, 20: 0.985}


def match_log_probabilities(matched: int, length: int) -> list[float]:
    """Of `length` tokens after a match of `matched`, each given those before it."""
    table = [0.3]  # below the shortest match that PromptLookup takes: never asked for by it
    for count in range(1, matched + length):
        table.append(MATCH_PROBABILITIES.get(count, table[-1]))
    return [math.log(p) for p in table[matched : matched + length]]


class PromptLookup:
    """Finds where the newest tokens occurred before and proposes what followed there.

    Of all earlier occurrences the one that agrees furthest backwards wins (at least `shortest` tokens, compared up to
    `longest`), of equals the most recent.
    """

    def __init__(self, shortest: int = 2, longest: int = 32):
        self.shortest, self.longest = shortest, longest
        self.tokens: list[int] = []
        self.matched = 0  # tokens that the occurrence agreed in of which `propose` spoke last
        self.ends: dict[tuple[int, ...], list[int]] = {}  # last `shortest` tokens -> where they ended, ascending

    def extend(self, tokens: Iterable[int]) -> None:
        """Tokens of prompt and answer as they become known."""
        for token in tokens:
            self.tokens.append(int(token))
            if len(self.tokens) >= self.shortest:
                key = tuple(self.tokens[-self.shortest:])
                self.ends.setdefault(key, []).append(len(self.tokens) - 1)

    def propose(self, length: int) -> list[int]:
        """Up to `length` tokens that follow the best match; none if there is no match.

        A match so near to the end that its continuation runs into the end goes on with the copy itself: text with a
        period of p tokens is continued with that period.
        """
        end = self._best_match()
        if end is None:
            return []
        period = len(self.tokens) - 1 - end
        path: list[int] = []
        for i in range(length):
            path.append(self.tokens[end + 1 + i] if i < period else path[i - period])
        return path

    def _best_match(self) -> int | None:
        """Last position of the best earlier occurrence."""
        newest = len(self.tokens) - 1
        best, best_length = None, 0
        for end in reversed(self.ends.get(tuple(self.tokens[-self.shortest:]), [])[:-1]):
            length = self.shortest
            while length < self.longest and length <= end and self.tokens[end - length] == self.tokens[newest - length]:
                length += 1
            if length > best_length:
                best, best_length = end, length
            if length == self.longest:
                break  # bounds the work on text that repeats itself: older ones cannot be better
        self.matched = best_length
        return best


class CountTable:
    """How often each token followed each context of 0 to 3 tokens, and next-token probabilities from that.

    Interpolated absolute discounting: p_n(w) = (count(w) - d) / total + d * kinds / total * p_{n-1}(w), with the
    `kinds` different followers of the context giving d each to the shorter context. Kept per context: all followers,
    most frequent first, in flat arrays. A context's number is that of its last pair (shorter context, token), so that a
    pair is one 64-bit key for any vocabulary.
    """

    ORDERS = 4  # context lengths 0 .. 3
    DISCOUNT = 0.5

    def __init__(self, sequences: Iterable[Sequence[int]], vocab: int, most: int = 32):
        """`most`: followers that are looked at per context, at most."""
        self.most = most
        arrays = [np.empty(0, np.int64)] + [np.asarray(s, np.int64) for s in sequences]
        tokens = np.concatenate(arrays)
        places = np.concatenate([np.arange(len(array)) for array in arrays])  # in their sequences
        contexts = np.zeros(len(tokens), np.int64)  # of each token
        self.orders = []
        for length in range(self.ORDERS):
            whole = places >= length
            followers = _Followers(contexts[whole], tokens[whole], vocab)
            contexts[whole] = followers.numbers
            contexts = np.roll(contexts, 1)
            self.orders.append(followers)
        self.known: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}

    def children(self, context: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Context tokens (the last three count) -> tokens and log-probabilities, best first."""
        key = tuple(int(t) for t in context[-(self.ORDERS - 1):])
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._interpolate(key)
        return found

    def followers(self, context: Sequence[int]) -> tuple[np.ndarray, np.ndarray, int, int] | None:
        """(tokens, counts, total count, kinds) after a context; None if it was never followed by anything."""
        number: int | None = 0
        for order, token in zip(self.orders, context):
            number = order.number_of(number, token)
            if number is None:
                return None
        return self.orders[len(context)].of(number)

    def _interpolate(self, context: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        mass: dict[int, float] = {}
        for length in range(len(context) + 1):
            followers = self.followers(context[len(context) - length:])
            if followers is None:
                break  # a longer context cannot have been seen either
            tokens, counts, total, kinds = followers
            handed_down = self.DISCOUNT * kinds / total if length > 0 else 1.0
            taken = self.DISCOUNT if length > 0 else 0.0
            mass = {token: p * handed_down for token, p in mass.items()}
            for token, count in zip(tokens[: self.most].tolist(), counts[: self.most].tolist()):
                mass[token] = mass.get(token, 0.0) + (count - taken) / total
        best = sorted(mass.items(), key=lambda item: (-item[1], item[0]))[: self.most]
        return np.array([t for t, _ in best], np.int64), np.log(np.array([p for _, p in best]))

    def propose(self, context: Sequence[int], nodes: int, depth: int = 8) -> DraftTree:
        """The best-first tree after `context` (which ends with the anchor)."""
        recent = tuple(int(t) for t in context[-(self.ORDERS - 1):])
        return best_first(lambda path: self.children(recent + path), nodes, depth)


class _Followers:
    """Followers of all contexts of one length: tokens and counts [pairs], grouped by context, frequent first."""

    def __init__(self, contexts: np.ndarray, tokens: np.ndarray, vocab: int):
        """contexts, tokens [n] int64: each token and the number of the context that it follows."""
        self.vocab = vocab
        self.keys, self.numbers, counts = np.unique(contexts * vocab + tokens, return_inverse=True, return_counts=True)
        of_keys = self.keys // vocab
        order = np.lexsort((self.keys, -counts, of_keys))
        self.tokens = (self.keys % vocab)[order].astype(np.int32)
        self.counts = counts[order].astype(np.int32)
        self.contexts, starts = np.unique(of_keys, return_index=True)
        self.starts = np.append(starts, len(self.keys))
        self.totals = np.add.reduceat(counts, starts) if len(starts) else np.empty(0, np.int64)

    def number_of(self, context: int, token: int) -> int | None:
        """The number of a context with one more token; None if the token never followed it."""
        key = context * self.vocab + token
        at = int(np.searchsorted(self.keys, key))
        return at if at < len(self.keys) and self.keys[at] == key else None

    def of(self, context: int) -> tuple[np.ndarray, np.ndarray, int, int] | None:
        at = int(np.searchsorted(self.contexts, context))
        if at == len(self.contexts) or self.contexts[at] != context:
            return None
        pairs = slice(int(self.starts[at]), int(self.starts[at + 1]))
        return self.tokens[pairs], self.counts[pairs], int(self.totals[at]), pairs.stop - pairs.start

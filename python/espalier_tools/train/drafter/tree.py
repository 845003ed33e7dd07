"""Trees of draft tokens: best-first search, the greedy chain, a looked-up path grafted in, and what a target accepts.

A tree is a flat list in which every parent stands before its children; the root (the anchor, already certain) is not a
node. Nothing here knows where probabilities come from: the drafter's block (MarkovSlots) and count tables (tables.py)
both serve as `children` of the search.
"""

import dataclasses
import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

ROOT = -1

# Path from the root (token ids) -> candidate tokens and their log-probabilities, best first.
Children = Callable[[tuple[int, ...]], tuple[Sequence[int], Sequence[float]]]


@dataclasses.dataclass
class DraftTree:
    """Node i holds tokens[i], hangs on parents[i] (ROOT or an earlier node), and the path to it has log-probability
    log_probabilities[i] under its proposer (-inf in path_tree, which nobody rated)."""

    parents: list[int] = dataclasses.field(default_factory=list)
    tokens: list[int] = dataclasses.field(default_factory=list)
    log_probabilities: list[float] = dataclasses.field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, parent: int, token: int, log_probability: float) -> int:
        """Index of the new node."""
        self.parents.append(parent)
        self.tokens.append(token)
        self.log_probabilities.append(log_probability)
        return len(self.tokens) - 1

    def first(self, nodes: int) -> "DraftTree":
        """The first nodes: of a best-first tree, the best-first tree of that size."""
        return DraftTree(self.parents[:nodes], self.tokens[:nodes], self.log_probabilities[:nodes])

    def depths(self) -> list[int]:
        """Tokens from the root to each node, itself included."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == ROOT else depths[parent] + 1)
        return depths

    def path(self, node: int) -> tuple[int, ...]:
        """Tokens from the root to the node."""
        tokens = []
        while node != ROOT:
            tokens.append(self.tokens[node])
            node = self.parents[node]
        return tuple(reversed(tokens))

    def edges(self) -> dict[tuple[int, int], int]:
        """(parent, token) -> node. Two nodes with one parent and one token would be the same proposal: an error."""
        edges = {edge: node for node, edge in enumerate(zip(self.parents, self.tokens))}
        if len(edges) != len(self):
            raise ValueError("two nodes of the tree have the same parent and token")
        return edges


def best_first(children: Children, nodes: int, depth: int) -> DraftTree:
    """The `nodes` most probable paths of at most `depth` tokens, most probable first.

    A child is never more probable than its parent, nor a sibling than the one before it, so that the heap needs one
    unseen sibling per list and one first child per node. Equal probabilities keep the order of discovery.
    """
    tree = DraftTree()
    heap: list[tuple] = []
    serial = itertools.count()

    def offer(parent: int, path: tuple[int, ...], options: tuple, rank: int, so_far: float) -> None:
        if rank < len(options[0]):
            total = so_far + float(options[1][rank])
            heapq.heappush(heap, (-total, next(serial), parent, path, options, rank, so_far))

    if nodes > 0 and depth > 0:
        offer(ROOT, (), children(()), 0, 0.0)
    while heap:
        cost, _, parent, path, options, rank, so_far = heapq.heappop(heap)
        token = int(options[0][rank])
        node = tree.add(parent, token, -cost)
        if len(tree) == nodes:
            break
        offer(parent, path, options, rank + 1, so_far)
        path += (token,)
        if len(path) < depth:
            offer(node, path, children(path), 0, -cost)
    return tree


def first_children(children: Children, length: int) -> DraftTree:
    """The chain: the best child of the best child, `length` times."""
    tree = DraftTree()
    path: tuple[int, ...] = ()
    total = 0.0
    while len(path) < length:
        tokens, log_probabilities = children(path)
        if len(tokens) == 0:
            break
        total += float(log_probabilities[0])
        tree.add(len(tree) - 1, int(tokens[0]), total)
        path += (int(tokens[0]),)
    return tree


# --------------------------------------------------------------------------------------------------------------------
# The drafter's block


@dataclasses.dataclass
class Markov:
    """The Markov head in numpy: w1 [vocab, rank], w2 [draft rows, rank] fp32; d2t [draft rows] token of each row."""

    w1: np.ndarray
    w2: np.ndarray
    d2t: np.ndarray

    @staticmethod
    def of(model) -> "Markov":
        """From a DSpark module (dspark.py)."""
        head = model.markov_head
        w1, w2 = (m.weight.detach().float().cpu().numpy() for m in (head.markov_w1, head.markov_w2))
        d2t = np.arange(len(w2)) if model.d2t is None else model.d2t.cpu().numpy()
        return Markov(w1, w2, d2t)


class MarkovSlots:
    """Children of a path from one draft round: base logits of the slot, plus the Markov bias of the path's last token.

    base [slots, m] fp32: base logits of m draft rows per slot; rows [slots, m] int: which rows, None for all. With
    fewer than all rows the probabilities are of these rows only: cheaper, and too high by the mass left out.
    """

    def __init__(self, base: np.ndarray, markov: Markov, anchor: int, k: int, rows: np.ndarray | None = None):
        self.base, self.markov, self.anchor, self.k, self.rows = base, markov, anchor, k, rows
        self.gathered: dict[int, np.ndarray] = {}  # slot -> w2 of its rows [m, rank]

    def __call__(self, path: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        slot = len(path)
        logits = self.base[slot] + self._w2(slot) @ self.markov.w1[path[-1] if path else self.anchor]
        k = min(self.k, len(logits))
        best = np.argpartition(-logits, k - 1)[:k]
        # By row where logits are equal, so that the order does not hang on argpartition.
        best = best[np.lexsort((best, -logits[best]))]
        top = logits[best]
        log_probabilities = top - top[0] - np.log(np.exp(logits - top[0]).sum())
        rows = best if self.rows is None else self.rows[slot][best]
        return self.markov.d2t[rows], log_probabilities

    def _w2(self, slot: int) -> np.ndarray:
        if self.rows is None:
            return self.markov.w2
        if slot not in self.gathered:
            self.gathered[slot] = self.markov.w2[self.rows[slot]]
        return self.gathered[slot]


# --------------------------------------------------------------------------------------------------------------------
# Grafting and acceptance


def graft(tree: DraftTree, path: Sequence[int], log_probabilities: Sequence[float], nodes: int) -> DraftTree:
    """The `nodes` most probable nodes of a best-first tree and a path of tokens from the root together.

    log_probabilities: of each token of the path given those before it. A node of both has the better rating. Ratings
    never rise from parent to child, so the best nodes hang together.
    """
    merged = DraftTree(list(tree.parents), list(tree.tokens), list(tree.log_probabilities))
    edges = merged.edges()
    at, so_far = ROOT, 0.0
    for token, log_probability in zip(path, log_probabilities):
        so_far += log_probability
        node = edges.get((at, token))
        if node is None:
            node = edges[at, token] = merged.add(at, token, so_far)
        merged.log_probabilities[node] = max(merged.log_probabilities[node], so_far)
        at = node
    return _best(merged, nodes)


def _best(tree: DraftTree, nodes: int) -> DraftTree:
    """The most probable nodes of a tree in which no child is rated above its parent; of equals the earlier."""
    order = sorted(range(len(tree)), key=lambda node: -tree.log_probabilities[node])[:nodes]
    place = {ROOT: ROOT} | {old: new for new, old in enumerate(order)}
    return DraftTree(
        [place[tree.parents[old]] for old in order],
        [tree.tokens[old] for old in order],
        [tree.log_probabilities[old] for old in order],
    )


def path_tree(path: Sequence[int]) -> DraftTree:
    """A path nobody rated, as a tree."""
    return DraftTree(list(range(-1, len(path) - 1)), list(path), [float("-inf")] * len(path))


def accepted_nodes(tree: DraftTree, continuation: Sequence[int]) -> list[int]:
    """Nodes on the walk from the root along the target's own tokens; its length is the accepted length."""
    return list(_walk(tree.edges(), continuation))


def _walk(edges: dict[tuple[int, int], int], continuation: Sequence[int]) -> Iterator[int]:
    at = ROOT
    for token in continuation:
        at = edges.get((at, int(token)), None)
        if at is None:
            return
        yield at

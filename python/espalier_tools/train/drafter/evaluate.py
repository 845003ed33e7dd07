"""Replay: what drafters would have saved on answers that the target has already given.

    python -m espalier_tools.train.drafter.evaluate --target MODEL --drafter FOLDER --test SHARD... [--train SHARD...]

A greedy answer is known in full, so a cycle needs no target: with anchor n (token n is known, all rows before it have
taps) a method proposes a tree, the longest path that agrees with the transcript is accepted, and the next anchor is
the token behind it. **Tokens per cycle count that bonus token** (accepted + 1); an answer that ends inside the accepted
part has no bonus in its last cycle. Count tables and lookup are measured by the same rule, alone and together: the
baseline.
"""

import argparse
import dataclasses
import functools
import json
import pathlib
import statistics
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from espalier_tools.train.drafter import dspark
from espalier_tools.train.drafter.tables import CountTable, PromptLookup, match_log_probabilities
from espalier_tools.train.drafter.tree import (
    DraftTree,
    Markov,
    MarkovSlots,
    accepted_nodes,
    best_first,
    first_children,
    graft,
    path_tree,
)
from espalier_tools.train.network import Network

TREE_SIZES = (4, 8, 16, 32)
MOST_NODES = max(TREE_SIZES)
CANDIDATES = 256  # draft rows per slot that the Markov head rates; the others are too improbable to be drafted
ANCHORS_AT_ONCE = 192  # bounds the logits in memory: 192 * 6 * 49152 fp32 are 226 MB
TABLE_DEPTH = 16
COPY_RUN, COPIED = 4, 0.8


@dataclasses.dataclass
class Text:
    """One transcript as replay needs it: ids [T] or [T + 1] tokens for taps [T, tap_width]."""

    ids: list[int]
    prompt_length: int
    taps: Tensor
    kind: str

    @staticmethod
    def of(transcript) -> "Text":
        """From a target.Transcript, or a dict with ids, prompt_length, taps (tensor or fp16 / fp32 array) and class."""
        if not isinstance(transcript, dict):
            rows = transcript.tap_rows()
            return Text(transcript.ids.tolist(), transcript.prompt_length, rows, transcript.kind)
        taps = torch.as_tensor(transcript["taps"])
        return Text([int(t) for t in transcript["ids"]], int(transcript["prompt_length"]), taps, transcript["class"])

    def kinds(self) -> list[str]:
        """Its class, "all", and "copied" where the answer really copies: most of its runs of tokens stand in the prompt."""
        return ["all", self.kind] + ["copied"] * (self.copied() >= COPIED)

    def copied(self) -> float:
        """The share of the answer's runs of COPY_RUN tokens that stand in the prompt."""
        prompt, answer = self.ids[: self.prompt_length], self.ids[self.prompt_length :]
        known = set(zip(*(prompt[i:] for i in range(COPY_RUN))))
        runs = list(zip(*(answer[i:] for i in range(COPY_RUN))))
        return sum(run in known for run in runs) / len(runs) if runs else 0.0

    def anchors(self) -> range:
        """Positions where a cycle can start: answer tokens that have a next one."""
        return range(self.prompt_length, len(self.ids) - 1)


# --------------------------------------------------------------------------------------------------------------------
# Proposals


@dataclasses.dataclass
class Drafter:
    """A model with its Markov head as numpy arrays, for many trees."""

    model: dspark.DSpark
    markov: Markov
    candidates: int

    @staticmethod
    def of(model: dspark.DSpark, candidates: int = CANDIDATES) -> "Drafter":
        return Drafter(model.eval(), Markov.of(model), min(candidates, model.config.draft_rows))

    @torch.no_grad()
    def rounds(self, text: Text, dtype: torch.dtype | None) -> tuple[np.ndarray, np.ndarray]:
        """The best draft rows of all slots at all anchors: base logits and row numbers, [anchors, block, candidates].

        One training forward stands for all draft rounds: a block sees rows before its anchor only, as in decoding.
        """
        ids = torch.tensor(text.ids)
        values, rows = [], []
        for anchors in torch.tensor(text.anchors()).split(ANCHORS_AT_ONCE):
            base = self.model.forward_base(text.taps, ids, anchors, dtype).topk(self.candidates, dim=-1)
            values.append(base.values.float().numpy())
            rows.append(base.indices.numpy())
        return np.concatenate(values), np.concatenate(rows)


class Proposals:
    """Every source's proposals at the anchors of one text, each made once: smaller trees are the first nodes of it."""

    def __init__(self, text: Text, drafter: Drafter | None, table: CountTable | None, dtype: torch.dtype | None):
        self.text, self.drafter, self.table = text, drafter, table
        if drafter is not None and len(text.anchors()) > 0:
            self.values, self.rows = drafter.rounds(text, dtype)
        self.paths = _lookup_paths(text)
        self.tree = functools.cache(self._tree)
        self.chain = functools.cache(self._chain)
        self.table_tree = functools.cache(self._table_tree)

    def lookup(self, n: int) -> list[int]:
        """Up to MOST_NODES tokens."""
        return self.paths[n - self.text.prompt_length][0]

    def with_lookup(self, tree: DraftTree, n: int, nodes: int) -> DraftTree:
        path, matched = self.paths[n - self.text.prompt_length]
        return graft(tree, path, match_log_probabilities(matched, len(path)), nodes)

    def _slots(self, n: int, k: int) -> MarkovSlots:
        i = n - self.text.prompt_length
        return MarkovSlots(self.values[i], self.drafter.markov, self.text.ids[n], k, self.rows[i])

    def _tree(self, n: int) -> DraftTree:
        return best_first(self._slots(n, MOST_NODES), MOST_NODES, len(self.values[0]))

    def _chain(self, n: int) -> DraftTree:
        return first_children(self._slots(n, 1), len(self.values[0]))

    def _table_tree(self, n: int) -> DraftTree:
        return self.table.propose(self.text.ids[max(0, n - 8) : n + 1], MOST_NODES, TABLE_DEPTH)


def _lookup_paths(text: Text) -> list[tuple[list[int], int]]:
    """The looked-up path at each anchor, and how many tokens its occurrence agreed in."""
    lookup = PromptLookup()
    lookup.extend(text.ids[: text.prompt_length])
    paths = []
    for n in text.anchors():
        lookup.extend(text.ids[n : n + 1])
        paths.append((lookup.propose(MOST_NODES), lookup.matched))
    return paths


@dataclasses.dataclass(frozen=True)
class Method:
    name: str
    nodes: int
    propose: Callable[[Proposals, int], DraftTree]


def methods(block: int | None, table: bool) -> list[Method]:
    """All methods that the sources at hand allow; `block` None: there is no drafter."""
    found = [Method("lookup", b, lambda p, n, b=b: path_tree(p.lookup(n)[:b])) for b in TREE_SIZES]
    if table:
        found += [Method("table tree", b, lambda p, n, b=b: p.table_tree(n).first(b)) for b in TREE_SIZES]
        found += [Method("table tree + lookup", b, lambda p, n, b=b: p.with_lookup(p.table_tree(n), n, b))
                  for b in TREE_SIZES]
    if block is not None:
        found += [Method("drafter chain", b, lambda p, n, b=b: p.chain(n).first(b)) for b in range(1, block + 1)]
        found += [Method("drafter tree", b, lambda p, n, b=b: p.tree(n).first(b)) for b in TREE_SIZES]
        found += [Method("drafter tree + lookup", b, lambda p, n, b=b: p.with_lookup(p.tree(n), n, b))
                  for b in TREE_SIZES]
    return found


# --------------------------------------------------------------------------------------------------------------------
# Cycles


@dataclasses.dataclass
class Count:
    """Sums over cycles. reach[d]: cycles that accepted more than d tokens."""

    cycles: int = 0
    tokens: int = 0
    nodes: int = 0
    reach: list[int] = dataclasses.field(default_factory=list)

    def add(self, accepted: int, tokens: int, nodes: int) -> None:
        self.cycles += 1
        self.tokens += tokens
        self.nodes += nodes
        self.reach += [0] * (accepted - len(self.reach))
        for depth in range(accepted):
            self.reach[depth] += 1

    def numbers(self) -> dict:
        """Rates: acceptance[d] is over all cycles (cumulative), so that 1 + its sum is tokens per cycle up to ends."""
        cycles = max(self.cycles, 1)
        return {"cycles": self.cycles, "tokens": self.tokens, "tokens_per_cycle": self.tokens / cycles,
                "nodes_per_cycle": self.nodes / cycles, "acceptance_by_depth": [r / cycles for r in self.reach]}


def replay(
    ids: Sequence[int], prompt_length: int, propose: Callable[[int], DraftTree], counts: Sequence[Count]
) -> None:
    """Walks through one answer cycle by cycle. The first answer token comes from the prompt's own forward."""
    last = len(ids) - 1
    n = prompt_length
    while n < last:
        tree = propose(n)
        accepted = len(accepted_nodes(tree, ids[n + 1 :]))
        tokens = min(accepted + 1, last - n)  # no bonus behind the end
        for count in counts:
            count.add(accepted, tokens, len(tree))
        n += accepted + 1


def evaluate(transcripts: Iterable, model: dspark.DSpark | None = None, table: CountTable | None = None,
             dtype: torch.dtype | None = torch.bfloat16, candidates: int = CANDIDATES,
             network: Network | None = None) -> dict:
    """Results of all methods over the transcripts (Transcript or dict each), by class, with times per draft; and with the
    target's network tokens a second."""
    started = time.perf_counter()
    drafter = None if model is None else Drafter.of(model, candidates)
    chosen = methods(None if model is None else model.config.block_size, table is not None)
    counts: dict[str, list[Count]] = {"all": [Count() for _ in chosen]}
    scored: dict[str, int] = {}
    longest = None
    for text in map(Text.of, transcripts):
        proposals = Proposals(text, drafter, table, dtype)
        of_kinds = [counts.setdefault(kind, [Count() for _ in chosen]) for kind in text.kinds()]
        for i, method in enumerate(chosen):
            replay(text.ids, text.prompt_length, lambda n: method.propose(proposals, n), [of[i] for of in of_kinds])
        for kind in text.kinds():
            scored[kind] = scored.get(kind, 0) + len(text.anchors())
        longest = text if longest is None or len(text.ids) > len(longest.ids) else longest
    result = {"tokens": scored, "counts_bonus": True, "candidates": candidates, "methods": [
        {"name": method.name, "nodes": method.nodes} | {kind: of[i].numbers() for kind, of in counts.items()}
        for i, method in enumerate(chosen)]}
    if longest is not None:
        result["milliseconds_per_draft"] = times(longest, drafter, table, dtype)
        if network is not None:
            result["target_milliseconds"] = target_ms(network)
            result["tokens_per_second"] = tokens_per_second(result, result["target_milliseconds"])
    return result | {"seconds": time.perf_counter() - started}


# --------------------------------------------------------------------------------------------------------------------
# Time


def _median_ms(call: Callable[[], object], repeats: int = 9) -> float:
    """Of single calls, after one to warm up."""
    call()
    spans = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        spans.append(time.perf_counter() - started)
    return 1000 * statistics.median(spans)


def times(text: Text, drafter: Drafter | None, table: CountTable | None, dtype: torch.dtype | None) -> dict[str, float]:
    """Milliseconds of each step of one draft at the end of the text, in this Python: for ratios, not for the engine."""
    ids = text.ids[:-1]
    lookup = PromptLookup()
    lookup.extend(ids)
    found = {"lookup": _median_ms(lambda: lookup.propose(16))}
    if table is not None:
        found["table tree 16"] = _median_ms(lambda: (table.known.clear(), table.propose(ids[-8:], 16)))
    if drafter is None:
        return found
    state = dspark.DraftState(drafter.model, dtype)
    state.append(text.taps[: len(ids) - 2])
    rows = text.taps[len(ids) - 2 : len(ids) - 1]

    def append_again() -> None:
        state.length = len(ids) - 2
        state.append(rows)

    def slots(k: int) -> MarkovSlots:
        base = state.propose_base(ids[-1])[0].topk(drafter.candidates, dim=-1)
        return MarkovSlots(base.values.numpy(), drafter.markov, ids[-1], k, base.indices.numpy())

    block = drafter.model.config.block_size
    found["drafter context row"] = _median_ms(append_again)
    found["drafter block"] = _median_ms(lambda: state.propose_base(ids[-1]))
    found["drafter block + chain"] = _median_ms(lambda: first_children(slots(1), block))
    for nodes in TREE_SIZES:
        found[f"drafter block + tree {nodes}"] = _median_ms(lambda: best_first(slots(nodes), nodes, block))
    return found


@torch.no_grad()
def target_ms(network: Network, context: int = 256) -> dict[int, float]:
    """Milliseconds of a verifying call by its rows: 1 (plain decoding) and 1 + nodes for each tree size."""
    caches = network.cache(1, context + MOST_NODES + 1)
    starts, slot = torch.tensor([context]), torch.tensor([0])

    def call(rows: int) -> None:
        network.logits(network.extend(torch.ones(1, rows, dtype=torch.long), caches, slot, starts)[0])

    return {rows: _median_ms(lambda rows=rows: call(rows)) for rows in (1, *(nodes + 1 for nodes in TREE_SIZES))}


def tokens_per_second(result: dict, calls: dict[int, float]) -> dict[str, float]:
    """Of plain decoding and of each method with its largest trees of 16 nodes or fewer, in torch on this machine.

    A cycle is one verifying call, and the drafting: what lookup, table or drafter were measured to take.
    """
    drafting = result["milliseconds_per_draft"]
    costs = {"lookup": 0.0, "table tree": drafting.get("table tree 16", 0), "table tree + lookup": drafting.get("table tree 16", 0)}
    block = drafting.get("drafter context row", 0) + drafting.get("drafter block + tree 16", 0)
    costs |= {"drafter tree": block, "drafter tree + lookup": block}
    found = {"plain": 1000 / calls[1]}
    for method in result["methods"]:
        if method["nodes"] == 16:
            cycle = calls[17] + costs[method["name"]]
            found[f"{method['name']} 16"] = 1000 * method["all"]["tokens_per_cycle"] / cycle
    return found


# --------------------------------------------------------------------------------------------------------------------
# Report


def text_table(result: dict) -> str:
    """Tokens per cycle by class, acceptance of the first slots, then times."""
    rows = result["methods"]
    kinds = ["all"] + sorted(kind for kind in rows[0] if kind not in ("name", "nodes", "all"))
    lines = [f"tokens per cycle, bonus included; tokens scored: {result['tokens']}",
             f"{'method':24}{'nodes':>6}" + "".join(f"{kind:>8}" for kind in kinds) + "   accepted at depth 1, 2, ..."]
    for row in rows:
        rates = "".join(f"{kind:8.2f}" for kind in (row[k]["tokens_per_cycle"] for k in kinds))
        depth = " ".join(f"{a:.2f}" for a in row["all"]["acceptance_by_depth"][:8])
        lines.append(f"{row['name']:24}{row['nodes']:6}{rates}   {depth}")
    lines += [f"{name:32}{ms:10.3f} ms" for name, ms in result.get("milliseconds_per_draft", {}).items()]
    lines += [f"target call of {rows:2} rows{ms:25.3f} ms" for rows, ms in result.get("target_milliseconds", {}).items()]
    lines += [f"{name:32}{rate:10.1f} tokens/s" for name, rate in result.get("tokens_per_second", {}).items()]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", type=pathlib.Path, help="HF directory or GGUF file; needed with --drafter")
    parser.add_argument("--drafter", type=pathlib.Path, help="folder of model.safetensors and config.json")
    parser.add_argument("--test", type=pathlib.Path, nargs="+", required=True, help="greedy shards to replay")
    parser.add_argument("--train", type=pathlib.Path, nargs="*", default=[], help="shards to count for the table")
    parser.add_argument("--most", type=int, help="transcripts to replay, at most")
    parser.add_argument("--json", type=pathlib.Path, help="where the numbers go")
    options = parser.parse_args(arguments)
    if (options.target is None) != (options.drafter is None):
        parser.error("--drafter works on the embedding table of its --target: give both or neither")

    from espalier_tools.train.drafter.target import load_network
    from espalier_tools.train.drafter.text import read_shard

    model, network = None, None
    if options.drafter is not None:
        network = load_network(options.target)[0]
        model = dspark.load(options.drafter, network.embed_tokens.weight)
    transcripts = [t for path in options.test for t in read_shard(path)][: options.most]
    answers = [t.ids[t.prompt_length :] for path in options.train for t in read_shard(path)]
    vocab = 1 + max(int(ids.max()) for ids in answers + [t.ids for t in transcripts])
    result = evaluate(transcripts, model, CountTable(answers, vocab) if answers else None, network=network)
    print(text_table(result))
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

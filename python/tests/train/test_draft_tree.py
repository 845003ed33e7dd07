"""Trees, lookup, count tables and replay.

Run from python/:  PYTHONPATH=. OMP_NUM_THREADS=1 ../.venv/bin/pytest tests/train/test_draft_tree.py
"""

import itertools
import json
import math

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from espalier_tools.train.drafter import dspark, evaluate
from espalier_tools.train.drafter.tables import CountTable, PromptLookup, match_log_probabilities
from espalier_tools.train.drafter.tree import ROOT, DraftTree, Markov, MarkovSlots, accepted_nodes, best_first
from espalier_tools.train.drafter.tree import first_children, graft, path_tree


def build_tree(base: np.ndarray, markov: Markov, anchor: int, nodes: int, k: int) -> DraftTree:
    """base [slots, draft rows] of one round -> its best-first tree, at most `k` children a node."""
    return best_first(MarkovSlots(base, markov, anchor, k), nodes, len(base))


def chain(base: np.ndarray, markov: Markov, anchor: int, length: int) -> DraftTree:
    """base [slots, draft rows] -> the greedy chain of the first `length` slots."""
    return first_children(MarkovSlots(base, markov, anchor, 1), min(length, len(base)))


def listed(children: dict[tuple, dict[int, float]]):
    """Children of the search from a table path -> {token: probability}."""

    def of(path):
        options = sorted(children.get(path, {}).items(), key=lambda item: -item[1])
        return [t for t, _ in options], [float(np.log(p)) for _, p in options]

    return of


# -- best-first search


def test_tree_by_hand():
    children = listed({(): {5: 0.6, 6: 0.3}, (5,): {5: 0.9, 7: 0.1}, (5, 5): {8: 0.4, 9: 0.35}, (6,): {5: 0.8}})
    tree = best_first(children, 6, 3)
    # 5 (.6), 55 (.54), 6 (.3), 65 (.24), 558 (.216), 559 (.189): token 5 occurs under three parents
    assert tree.tokens == [5, 5, 6, 5, 8, 9]
    assert tree.parents == [ROOT, 0, ROOT, 2, 1, 1]
    assert np.allclose(np.exp(tree.log_probabilities), [0.6, 0.54, 0.3, 0.24, 0.216, 0.189])
    assert tree.depths() == [1, 2, 1, 2, 3, 3] and tree.path(5) == (5, 5, 9)
    assert best_first(children, 0, 3) == DraftTree() and best_first(children, 3, 0) == DraftTree()
    assert len(best_first(children, 100, 3)) == 7  # all there are
    assert max(best_first(children, 100, 2).depths()) == 2


def random_round(rng, slots, rows, rank=3, scale=2.0):
    """(base logits [slots, rows], Markov head) with a draft vocabulary that is not the identity."""
    vocab = rows + 4
    d2t = rng.permutation(vocab)[:rows]
    head = Markov(rng.normal(size=(vocab, rank)), rng.normal(size=(rows, rank)), d2t)
    return rng.normal(size=(slots, rows)) * scale, head


def all_paths(base, head, anchor):
    """Every path -> its log-probability, by enumeration."""
    found = {}
    for length in range(1, len(base) + 1):
        for rows in itertools.product(range(base.shape[1]), repeat=length):
            previous, total = anchor, 0.0
            for slot, row in enumerate(rows):
                logits = base[slot] + head.w2 @ head.w1[previous]
                total += logits[row] - np.log(np.exp(logits).sum())
                previous = head.d2t[row]
            found[tuple(int(head.d2t[row]) for row in rows)] = total
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5), st.integers(1, 40))
def test_tree_is_the_most_probable_prefixes(seed, slots, rows, nodes):
    rng = np.random.default_rng(seed)
    base, head = random_round(rng, slots, rows)
    everything = all_paths(base, head, 1)
    tree = build_tree(base, head, 1, nodes, rows)
    paths = [tree.path(i) for i in range(len(tree))]
    assert len(set(paths)) == len(paths) == min(nodes, len(everything))
    assert all(parent < i for i, parent in enumerate(tree.parents))
    assert np.allclose([everything[p] for p in paths], tree.log_probabilities)
    assert np.allclose(tree.log_probabilities, sorted(everything.values(), reverse=True)[: len(tree)])
    half = build_tree(base, head, 1, max(nodes // 2, 1), rows)
    assert half == tree.first(len(half))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 9))
def test_first_children_only_are_the_chain(seed, slots, rows):
    base, head = random_round(np.random.default_rng(seed), slots, rows)
    tree = build_tree(base, head, 2, slots, 1)
    assert tree == chain(base, head, 2, slots)
    assert tree.parents == list(range(-1, slots - 1))
    assert chain(base, head, 2, 2) == tree.first(2)
    previous = 2
    for slot, token in enumerate(tree.tokens):  # greedy decoding, step by step
        previous = int(head.d2t[np.argmax(base[slot] + head.w2 @ head.w1[previous])])
        assert token == previous


def test_candidate_rows_give_the_same_tree_when_all_are_given():
    rng = np.random.default_rng(3)
    base, head = random_round(rng, 4, 20)
    order = np.argsort(-base, axis=1)
    sorted_base = np.take_along_axis(base, order, 1)
    tree = best_first(MarkovSlots(sorted_base, head, 0, 8, order), 16, 4)
    whole = build_tree(base, head, 0, 16, 8)
    assert (tree.parents, tree.tokens) == (whole.parents, whole.tokens)
    assert np.allclose(tree.log_probabilities, whole.log_probabilities)
    few = best_first(MarkovSlots(sorted_base[:, :10], head, 0, 8, order[:, :10]), 16, 4)
    assert set(few.tokens) <= {int(t) for t in head.d2t[order[:, :10]].flatten()}


# -- graft and acceptance


def example_tree() -> DraftTree:
    #  root - 5 - 6 - 7
    #       |   - 8
    #       - 9
    return DraftTree([ROOT, 0, ROOT, 1, 0], [5, 6, 9, 7, 8], [-0.1, -0.2, -0.3, -0.4, -0.5])


def test_graft_by_hand():
    # 5 is shared; 1 (-0.35) comes before 7 (-0.4) and 8 (-0.5), 2 (-0.6) after them
    merged = graft(example_tree(), [5, 1, 2], [-0.15, -0.2, -0.25], nodes=6)
    assert [merged.path(i) for i in range(6)] == [(5,), (5, 6), (9,), (5, 1), (5, 6, 7), (5, 8)]
    # a path that the tree has costs nothing and keeps the better rating
    merged = graft(example_tree(), [5, 6, 7], [-0.15, 0.0, 0.0], nodes=5)
    assert sorted(map(merged.path, range(5))) == sorted(map(example_tree().path, range(5)))
    assert sorted(merged.log_probabilities) == [-0.5, -0.3, -0.15, -0.15, -0.1]
    # the same token again on one path: nodes by (parent, token), not by token
    merged = graft(example_tree(), [9, 9, 9], [-0.3, -0.01, -0.01], nodes=8)
    assert {(9, 9), (9, 9, 9)} < {merged.path(i) for i in range(len(merged))}
    assert graft(example_tree(), [], [], 5) == example_tree()
    assert graft(DraftTree(), [4, 4], [-1.0, -1.0], 16).tokens == [4, 4]
    assert graft(example_tree(), [1, 2, 3], [-0.01, -0.01, -0.01], 2).tokens == [1, 2]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(0, 7), st.floats(-2, 0)), max_size=10),
    st.integers(1, 16),
)
def test_graft_takes_the_most_probable_nodes_of_both(seed, path, nodes):
    rng = np.random.default_rng(seed)
    base, head = random_round(rng, 4, 4)
    tree = build_tree(base, head, 0, 16, 4)
    merged = graft(tree, [token for token, _ in path], [rating for _, rating in path], nodes)
    rated = {tree.path(i): tree.log_probabilities[i] for i in range(len(tree))}
    for end in range(1, len(path) + 1):
        key = tuple(token for token, _ in path[:end])
        rated[key] = max(rated.get(key, float("-inf")), sum(rating for _, rating in path[:end]))
    found = {merged.path(i): merged.log_probabilities[i] for i in range(len(merged))}
    assert len(found) == len(merged) == nodes and all(parent < i for i, parent in enumerate(merged.parents))
    assert found.items() <= rated.items()
    assert sorted(found.values()) == sorted(rated.values())[-nodes:]


def test_longer_matches_are_trusted_more():
    for length in (1, 5, 30):
        sums = [sum(match_log_probabilities(matched, length)) for matched in range(2, 40)]
        assert sums == sorted(sums) and sums[-1] <= 0
    assert match_log_probabilities(2, 3) == [math.log(p) for p in (0.52, 0.61, 0.71)]


def test_acceptance_by_hand():
    tree = example_tree()
    assert accepted_nodes(tree, [5, 8, 1]) == [0, 4]
    assert accepted_nodes(tree, [5, 6, 7, 7]) == [0, 1, 3]
    assert accepted_nodes(tree, [6]) == [] and accepted_nodes(tree, []) == []
    assert accepted_nodes(path_tree([3, 3, 3]), [3, 3, 4]) == [0, 1]
    assert accepted_nodes(DraftTree(), [1]) == []
    try:
        accepted_nodes(DraftTree([ROOT, ROOT], [4, 4], [0.0, 0.0]), [4])
    except ValueError as error:
        assert "same parent and token" in str(error)
    else:
        raise AssertionError("two equal siblings passed")


# -- lookup and counts


def proposed(tokens, length, **options):
    lookup = PromptLookup(**options)
    lookup.extend(tokens)
    return lookup.propose(length)


def test_lookup_by_hand():
    assert proposed([1, 2, 3, 4, 1, 2], 2) == [3, 4]
    assert proposed([1, 2, 3, 9, 2], 4) == []  # one token is no match
    assert proposed([7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2], 1) == [3]  # the longest wins over the more recent
    assert proposed([1, 2, 3, 1, 2, 4, 1, 2], 1) == [4]  # of equals the most recent
    assert proposed([1, 2, 3, 1, 2], 5) == [3, 1, 2, 3, 1]  # a copy that runs into itself
    assert proposed([6, 6, 6], 3) == [6, 6, 6]
    assert proposed([1, 2], 3) == [] and proposed([], 3) == []
    assert proposed([1, 2, 3, 4, 5, 2, 3], 2, shortest=3) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2), max_size=30))
def test_lookup_is_the_longest_suffix(tokens):
    best = None
    for end in range(len(tokens) - 1):
        length = 0
        while length <= end and tokens[end - length] == tokens[-1 - length]:
            length += 1
        if length >= 2 and (best is None or length >= best[0]):
            best = (length, end)
    expected = [] if best is None else tokens[best[1] + 1 :][:1]
    assert proposed(tokens, 1) == expected


def probabilities(table, context):
    tokens, log_p = table.children(context)
    return dict(zip(tokens.tolist(), np.exp(log_p).tolist()))


def same(got, expected):
    assert got.keys() == expected.keys() and all(np.isclose(got[t], p) for t, p in expected.items()), got


def test_counts_by_hand():
    table = CountTable([[1, 2, 3], [1, 2, 4], [1, 2, 3]], vocab=8)
    base = {1: 3 / 9, 2: 3 / 9, 3: 2 / 9, 4: 1 / 9}
    same(probabilities(table, []), base)
    # 1 is followed by 2 three times: (3 - 0.5) / 3, and 0.5 * 1 / 3 handed down
    same(probabilities(table, [1]), {t: p * 0.5 / 3 + (2.5 / 3 if t == 2 else 0) for t, p in base.items()})
    after_two = {t: p * 0.5 * 2 / 3 + {3: 1.5 / 3, 4: 0.5 / 3}.get(t, 0) for t, p in base.items()}
    got = probabilities(table, [7, 2])  # the longer context is unknown
    same(got, after_two)
    assert list(got) == [3, 4, 1, 2]  # best first, by token where equal
    same(probabilities(table, [5]), base)
    for context in ([], [1], [1, 2], [4, 1, 2], [2]):
        assert np.isclose(sum(probabilities(table, context).values()), 1)
    assert probabilities(CountTable([], 8), [1]) == {}


def test_counts_propose_trees():
    table = CountTable([[1, 2, 3, 4, 5], [1, 2, 3, 4, 6]], vocab=8)
    tree = table.propose([1], 4)
    assert tree.tokens[:3] == [2, 3, 4] and tree.parents[:3] == [ROOT, 0, 1]
    assert table.propose([9 % 8, 1], 4) == table.propose([1], 4)
    assert len(CountTable([], 8).propose([1], 4)) == 0
    assert max(table.propose([1], 30, depth=2).depths()) == 2


def test_counts_take_any_vocabulary():
    large = [[100_001, 200_002, 3, 400_004] * 2, [200_002, 3]]
    names = {100_001: 0, 200_002: 1, 3: 2, 400_004: 3}
    small = CountTable([[names[t] for t in sequence] for sequence in large], 4)
    table = CountTable(large, 500_000)
    for context in itertools.product(names, repeat=3):
        got = {names[token]: p for token, p in probabilities(table, context).items()}
        same(got, probabilities(small, [names[t] for t in context]))


def test_counts_are_the_counts():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 5, size=n) for n in (0, 1, 2, 3, 50, 80)]
    table = CountTable(sequences, 5)
    for length in range(4):
        for context in itertools.product(range(5), repeat=length):
            counts = {}
            for s in sequences:
                for i in range(length, len(s)):
                    if tuple(s[i - length : i]) == context:
                        counts[int(s[i])] = counts.get(int(s[i]), 0) + 1
            got = table.followers(context)
            if not counts:
                assert got is None
                continue
            tokens, numbers, total, kinds = got
            assert dict(zip(tokens.tolist(), numbers.tolist())) == counts
            assert (total, kinds) == (sum(counts.values()), len(counts))
            assert list(numbers) == sorted(numbers, reverse=True)


# -- replay


def replayed(ids, prompt_length, propose):
    count = evaluate.Count()
    evaluate.replay(ids, prompt_length, propose, [count])
    return count


def test_replay_by_hand():
    ids = [9, 9, 1, 2, 3, 4, 5, 6]  # the answer is 1 .. 6; 1 comes from the prompt's own forward
    nothing = replayed(ids, 2, lambda n: DraftTree())
    assert (nothing.cycles, nothing.tokens, nothing.reach) == (5, 5, [])
    right = replayed(ids, 2, lambda n: path_tree(ids[n + 1 : n + 3]))
    # 1 -> 2 3 + bonus 4; 4 -> 5 6 and the end: no bonus
    assert (right.cycles, right.tokens, right.nodes, right.reach) == (2, 5, 4, [2, 2])
    half = replayed(ids, 2, lambda n: path_tree([ids[n + 1], 0]))
    # 1 -> 2 + 3; 3 -> 4 + 5; 5 -> 6, the end
    assert (half.cycles, half.tokens, half.reach) == (3, 5, [3])
    assert half.numbers()["tokens_per_cycle"] == 5 / 3 and half.numbers()["acceptance_by_depth"] == [1.0]
    assert replayed([9, 9, 1], 2, lambda n: DraftTree()).cycles == 0


def small_drafter(seed=0) -> dspark.DSpark:
    torch.manual_seed(seed)
    config = dspark.DSparkConfig(
        hidden=24, layers=1, heads=3, kv_heads=1, head_dim=8, intermediate=32, rms_norm_eps=1e-5, vocab_size=20,
        rope_theta=1e4, block_size=4, mask_token_id=0, target_layer_ids=(1, 3), num_target_layers=6, markov_rank=4,
        draft_vocab_size=12)
    model = dspark.DSpark(config, torch.randn(20, 24), torch.randperm(20)[:12])
    torch.nn.init.normal_(model.markov_head.markov_w2.weight)
    return model


def small_transcript(seed: int, kind: str, rows: int = 40) -> dict:
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 20, rows)
    ids[20:30] = ids[5:15]
    return {"ids": ids.astype(np.int32), "prompt_length": 12, "class": kind,
            "taps": rng.normal(size=(rows, 48)).astype(np.float16)}


def test_replay_drafts_as_decoding_does():
    model = small_drafter()
    text = evaluate.Text.of(small_transcript(1, "chat"))
    proposals = evaluate.Proposals(text, evaluate.Drafter.of(model), None, None)
    state = dspark.DraftState(model)
    head = Markov.of(model)
    for n in text.anchors():
        state.append(text.taps[state.length : n])
        base = state.propose_base(text.ids[n])[0].numpy()
        tree = build_tree(base, head, text.ids[n], 32, 32)
        got = proposals.tree(n)
        assert (got.parents, got.tokens) == (tree.parents, tree.tokens)
        assert proposals.chain(n).tokens == chain(base, head, text.ids[n], 4).tokens
        lookup = PromptLookup()
        lookup.extend(text.ids[: n + 1])
        assert proposals.lookup(n) == lookup.propose(32)


def test_evaluation_end_to_end():
    transcripts = [small_transcript(seed, kind) for seed, kind in enumerate(("chat", "copy", "chat"))]
    table = CountTable([t["ids"] for t in transcripts], 20)
    result = evaluate.evaluate(transcripts, small_drafter(), table)
    by_name = {(m["name"], m["nodes"]): m for m in result["methods"]}
    assert result["tokens"]["all"] == 3 * 27
    for method in result["methods"]:
        assert method["all"]["tokens"] == 3 * 27
        assert method["all"]["cycles"] == method["chat"]["cycles"] + method["copy"]["cycles"]
        assert 1 <= method["all"]["tokens_per_cycle"] <= method["nodes"] + 1
        assert method["all"]["nodes_per_cycle"] <= method["nodes"]
    for size in evaluate.TREE_SIZES:
        assert {(f"{name} tree{with_lookup}", size) for name in ("drafter", "table")
                for with_lookup in ("", " + lookup")} <= by_name.keys()
    chance, seen = (by_name[name]["all"]["tokens_per_cycle"] for name in (("drafter chain", 4), ("table tree", 16)))
    assert seen > 3 * chance  # the table has counted these very texts
    json.dumps(result)
    shown = evaluate.text_table(result)
    assert "drafter chain" in shown and "copy" in shown and "drafter block + tree 16" in shown
    alone = evaluate.evaluate(transcripts)
    assert {m["name"] for m in alone["methods"]} == {"lookup"}


def test_what_is_trained_is_what_is_drafted():
    """A target that answers by a fixed permutation: training must teach the very tokens that replay asks for."""
    model = small_drafter(3)
    successor = np.random.default_rng(3).permutation(model.d2t.numpy())
    follows = dict(zip(model.d2t.tolist(), successor.tolist()))
    ids = [int(model.d2t[0])]
    while len(ids) < 61:
        # Every 15 tokens the text jumps, so that all cycles of the permutation occur.
        ids.append(int(model.d2t[len(ids) // 15]) if len(ids) % 15 == 0 else follows[ids[-1]])
    ids = torch.tensor(ids)
    taps = torch.randn(60, 48)
    top_ids = ids[1:, None]
    anchors = torch.arange(1, 60)
    optimiser = torch.optim.AdamW(model.parameters(), 1e-2)
    for _ in range(60):
        out = model.forward_train(taps, ids, anchors)
        aims = dspark.block_targets(ids, anchors, 4, torch.ones(61), top_ids, torch.zeros(60, 1))
        total, _ = dspark.loss(out, aims.labels, aims.valid, aims.teacher, model.t2d, dspark.SOFT_LOSS)
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
    accuracy = dspark.slot_accuracy(out, aims.labels, aims.valid, model.t2d)
    assert accuracy.min() > 0.9, accuracy
    text = {"ids": ids.numpy(), "prompt_length": 1, "taps": taps, "class": "chat"}
    result = evaluate.evaluate([text], model)
    best = next(m for m in result["methods"] if (m["name"], m["nodes"]) == ("drafter chain", 4))
    assert best["all"]["tokens_per_cycle"] > 4, best["all"]


def test_shards_from_files(tmp_path, capsys):
    from espalier_tools.train.drafter.target import Transcript
    from espalier_tools.train.drafter.text import write_shard

    made = []
    for seed in range(3):
        plain = small_transcript(seed, "code")
        taps = torch.as_tensor(plain["taps"][:-1]).bfloat16().view(torch.int16).numpy().view(np.uint16)
        top = np.zeros((39, 16), np.int32)
        made.append(Transcript(plain["ids"], 12, taps, top, top.astype(np.float16), "code"))
    expected = torch.as_tensor(small_transcript(0, "code")["taps"][:-1]).bfloat16()
    assert torch.equal(evaluate.Text.of(made[0]).taps, expected)
    assert evaluate.evaluate(made, small_drafter())["tokens"] == {"all": 81, "code": 81}
    write_shard(tmp_path / "a.npz", made)
    shard = str(tmp_path / "a.npz")
    evaluate.main(["--test", shard, "--train", shard, "--most", "2", "--json", str(tmp_path / "out.json")])
    assert json.loads((tmp_path / "out.json").read_text())["tokens"]["all"] == 2 * 27
    assert "table tree + lookup" in capsys.readouterr().out


def test_an_answer_copies_if_its_runs_stand_in_the_prompt():
    taps = torch.zeros(1, 1)
    prompt = list(range(10, 40))
    copied = evaluate.Text(prompt + prompt[5:25] + [2], 30, taps, "chat")
    own = evaluate.Text(prompt + prompt[24:4:-1], 30, taps, "copy")
    assert copied.kinds() == ["all", "chat", "copied"] and own.kinds() == ["all", "copy"]
    assert evaluate.Text(prompt + [1, 2], 30, taps, "chat").copied() == 0.0  # too short for a run

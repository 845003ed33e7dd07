"""From conversations to batches: the chat template, other names for tools, labels, and the same data for the same seed."""

import random

import pytest
import torch

from espalier_tools.train.nano import calls
from espalier_tools.train.nano.aliases import renamed
from espalier_tools.train.nano.batches import Batch, Batches
from espalier_tools.train.nano.generator import Generator
from espalier_tools.train.nano.data_mix import DATA
from espalier_tools.train.nano.text import CONTROL, Encoded, Encoder, pieces, train_tokenizer

WORDS = ["anchor", "basil", "candle", "dune", "ember", "fjord", "gravel", "harbor", "iris", "juniper"]


@pytest.fixture(scope="module")
def conversations():
    generator = Generator(DATA, WORDS)
    return [generator.conversation(index, 3, stage) for stage in ("0", "1", "2", "refusal", "chat") for index in range(40)]


@pytest.fixture(scope="module")
def tokenizer(conversations):
    return train_tokenizer("".join(piece.text for piece in pieces(conversation)) for conversation in conversations)


def test_control_tokens_have_the_ids_of_lfm2(tokenizer):
    assert tokenizer.convert_tokens_to_ids(CONTROL) == list(range(len(CONTROL)))


def test_pieces_are_what_the_chat_template_gives(tokenizer, conversations):
    encoder = Encoder(tokenizer)
    for conversation in conversations:
        rendered = tokenizer.apply_chat_template(
            conversation["messages"], tools=conversation["tools"] or None, tokenize=False
        )
        assert rendered == "".join(piece.text for piece in pieces(conversation))
        encoded = encoder.encode(conversation)
        assert encoded.ids == tokenizer.encode(rendered, add_special_tokens=False)
        wanted = "".join(m["content"] + "<|im_end|>" for m in conversation["messages"] if m["role"] == "assistant")
        assert tokenizer.decode([i for i, loss in zip(encoded.ids, encoded.trained) if loss]) == wanted


def test_values_have_the_same_tokens_in_request_and_call(tokenizer):
    for value in ("Heraklion", "Aysel Mammadova", "floorplan.dwg", "Alder Street 12", "12 * 7", "São Mereu"):
        part = tokenizer.encode(value, add_special_tokens=False)
        for text in (f"Where is {value} now", f'[find_file(name="{value}")]', f"Open {value}, please", f'"{value}" it is'):
            ids = tokenizer.encode(text, add_special_tokens=False)
            assert any(ids[i : i + len(part)] == part for i in range(len(ids))), (value, text)


def test_other_names_stand_in_the_list_and_in_the_calls(conversations):
    changed = 0
    for number, conversation in enumerate(conversations):
        other = renamed(conversation, WORDS, random.Random(number))
        names = [tool.get("function", tool)["name"] for tool in other["tools"]]
        assert len(set(names)) == len(names)
        if conversation["tools"]:
            before = [tool.get("function", tool)["name"] for tool in conversation["tools"]]
            table = dict(zip(before, names))
            changed += before != names
            for old, new in zip(conversation["messages"], other["messages"]):
                old_calls, new_calls = calls.parse(old["content"]), calls.parse(new["content"])
                if old_calls is None:
                    assert new["content"] == old["content"]
                else:
                    assert new_calls == [(table.get(name, name), values) for name, values in old_calls]
    assert changed > 20


def test_hints_name_the_function_at_the_end_of_requests_and_descriptions(tokenizer, conversations):
    encoder, seen = Encoder(tokenizer), set()
    for number, conversation in enumerate(conversations):
        other = renamed(conversation, WORDS, random.Random(number))
        encoded = encoder.encode(other)
        places = dict(encoded.hints)
        origins = other.get("origins") or [tool.get("function", tool)["name"] for tool in other["tools"]]
        intents = [message["intent"] for message in other["messages"] if message.get("intent")]
        wanted = [tokenizer.encode(name, add_special_tokens=False)[0] for name in (*origins, *intents)]
        assert len(places) <= len(wanted) and set(places.values()) <= set(wanted)
        ends = [tokenizer.decode(encoded.ids[place]) for place in places]
        assert ends.count("<|im_end|>") == len(intents)
        seen |= set(ends)
        assert tokenizer.decode(encoded.ids) == "".join(piece.text for piece in pieces(other))
    assert {"timer", "city", "calendar"} < seen


def test_labels_are_the_tokens_after_their_places():
    sequences = [Encoded([5, 6, 7, 8], [False, True, False, True], [(2, 33)]), Encoded([9, 10], [True, True], [(0, 44)])]
    batch = Batch.of(sequences)
    assert batch.ids.tolist() == [[5, 6, 7, 8, 9, 10]] and batch.lengths == [4, 2]
    assert batch.places.tolist() == [0, 2, 4] and batch.labels.tolist() == [6, 8, 10]  # 9 follows nothing of its own
    assert batch.weights.tolist() == [5.0, 5.0, 5.0]
    assert batch.hint_places.tolist() == [2, 4] and batch.hints.tolist() == [33, 44]
    assert Batch.of([Encoded([1, 2, 3, 4], [False, False, True, True], [])]).weights.tolist() == [5.0, 1.0]


def test_a_step_has_the_same_data_whenever_it_comes():
    def example(index, progress):
        rng = random.Random(index)
        tokens = [rng.randrange(50) for _ in range(rng.randrange(2, 30))]
        return Encoded(tokens, [True] * len(tokens), [])

    one, other = (Batches(example, 200, 10, seed=4) for _ in range(2))
    later = one.batch(7)
    [other.batch(step) for step in range(7)]
    assert torch.equal(later.ids, other.batch(7).ids)
    assert not torch.equal(later.ids[0, :50], one.batch(8).ids[0, :50])

"""Prompts for the drafter: repeatable, unique, and held-out subjects never in training."""

from itertools import islice

import pytest

from espalier_tools.train.drafter import prompts as p

PASSAGES = [" ".join(f"Sentence {n} of passage {i} is short." for n in range(6)) for i in range(80)]


def take(class_name: str, split: str, seed: int = 1, count: int = 400) -> list[p.Chat]:
    """The first count chats of a run."""
    return list(islice(p.prompts(class_name, split, seed, PASSAGES), count))


@pytest.mark.parametrize("class_name", p.CLASSES)
@pytest.mark.parametrize("split", p.SPLITS)
def test_is_deterministic_and_unique(class_name: str, split: str) -> None:
    """The same arguments give the same chats; another seed gives others; none comes twice."""
    chats = take(class_name, split)
    assert chats == take(class_name, split)
    assert chats != take(class_name, split, seed=2)
    assert len({repr(chat) for chat in chats}) == len(chats)


@pytest.mark.parametrize("class_name", p.CLASSES)
@pytest.mark.parametrize("split", p.SPLITS)
def test_is_filled_in(class_name: str, split: str) -> None:
    """A chat ends with a user's turn in which no slot is left."""
    for chat in take(class_name, split):
        assert [m["role"] for m in chat] in (["user"], ["system", "user"])
        assert all(m["content"].strip() for m in chat)
        assert not p._SLOT.search(chat[-1]["content"]), chat[-1]["content"]


def test_topics_are_disjoint() -> None:
    """Every topic belongs to one split, and a topic that contains another one shares its split."""
    parts = [set(p._topics("any", split)) for split in p.SPLITS]
    assert sum(map(len, parts)) == len(set().union(*parts))
    assert all(p.subject_split(f"the history of {topic}") == "test" for topic in parts[2] if p._root(topic) == topic)


@pytest.mark.parametrize("class_name", p.CLASSES)
def test_prompts_are_disjoint(class_name: str) -> None:
    """No prompt of one split appears in another."""
    sets = [{chat[-1]["content"].lower() for chat in take(class_name, split)} for split in p.SPLITS]
    assert not sets[0] & sets[1] and not sets[0] & sets[2] and not sets[1] & sets[2]


def test_kinds_name_groups() -> None:
    """Every kind of chat pattern has a row of existing groups."""
    data = p.load()
    assert set(data["patterns"]["chat"]) <= set(data["kinds"])
    assert all(group in data["topics"] for groups in data["kinds"].values() for group in groups)


def test_refuses_unknown_names() -> None:
    """A wrong class or split is named in the error."""
    with pytest.raises(ValueError, match="poetry"):
        next(p.prompts("poetry", "train", 0))

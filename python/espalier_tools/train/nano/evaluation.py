"""Cases for measuring: what the user says, the tools, and what the assistant has to answer."""

import json
import pathlib
import random
from functools import cache
from typing import Any, Sequence

from espalier_tools.train.nano import calls, compose, pools
from espalier_tools.train.nano.content import INDEPENDENT_FILE, Function, Wording, read_functions
from espalier_tools.train.nano.generator import Generator
from espalier_tools.train.nano.plans import Plan
from espalier_tools.train.nano.requests import Request
from espalier_tools.train.nano.values import UNDIVIDED, Value

REFUSAL, NO_CALL = "refusal", "no call"  # expected where many texts are right
TOOLS = 4  # in a case's list

SPLITS = {  # kind of case -> split of wordings, split of values
    "values": ("train", "test"),  # new values in known wordings
    "wordings": ("test", "train"),  # known values in new wordings
    "foreign": ("train", "test"),  # names that other people wrote, in known wordings
    "independent": ("train", "test"),  # wordings and names that other people wrote
    "small_talk": ("test", "test"),
    "knowledge": ("test", "test"),
    "extraction": ("test", "test"),
    "refusal": ("test", "test"),
    "false_refusal": ("test", "test"),  # the tool is in the list
    "other_tools": ("test", "test"),  # requests and tools of another corpus
}

Case = dict[str, Any]


def _known_names() -> set[str]:
    """All that the pools hold, in lower case: such a name is not foreign."""
    lists = [value for value in vars(pools).values() if isinstance(value, tuple)]
    return {text.casefold() for pool in lists for text in pool}


class Evaluation:
    """Makes cases, deterministic in their arguments.

    words and foreign are those of the Generator that trained the model.
    """

    def __init__(
        self, data_folder: str | pathlib.Path, words: Sequence[str], foreign: str | pathlib.Path | None = None
    ):
        self._folder = pathlib.Path(data_folder)
        self._generator = cache(lambda wordings, values: Generator(self._folder, words, wordings, values, foreign))
        path = self._folder / INDEPENDENT_FILE
        independent = json.loads(path.read_text("utf-8")) if path.exists() else {}
        known = _known_names()
        self._names = {
            kind: [name for name in names if name.casefold() not in known]
            for kind, names in independent.get("names", {}).items()
        }
        self._independent = _independent_functions(read_functions(self._folder), independent)

    def cases(self, kind: str, count: int, seed: int = 0) -> list[Case]:
        """Cases of a kind of SPLITS.

        {"tools", "messages" up to the user's turn, "expected", "counts"}: the assistant's exact text, REFUSAL or NO_CALL,
        and whether the case has what its kind is about.
        """
        generator = self._generator(*SPLITS[kind])
        plan = Plan(tools=(TOOLS, TOOLS), turns=(1, 1), weights={})
        return [self._case(kind, generator, plan, random.Random(f"{kind}/{seed}/{index}")) for index in range(count)]

    def _case(self, kind: str, generator: Generator, plan: Plan, rng: random.Random) -> Case:
        requests = generator.requests
        if kind in ("small_talk", "knowledge", "extraction"):
            talk = Plan(tools=plan.tools, turns=(1, 1), weights={kind: 1})
            said = generator.conversation(rng.getrandbits(40), 0, talk)
            expected = said["messages"][1]["content"] if kind == "extraction" else NO_CALL
            return {"tools": said["tools"], "messages": said["messages"][:1], "expected": expected, "counts": True}
        if kind == "refusal":
            return self._refusal(generator, plan, rng)
        if kind == "independent":
            request = requests.request(rng.choice(self._independent), rng, self._draw(generator), vary=False)
        else:
            draw = self._draw(generator) if kind == "foreign" else None
            request = requests.request(
                rng.choice(requests.foreign if kind == "other_tools" else requests.asked), rng, draw
            )
        listed = requests.tool_list(plan, rng, request, present=True)
        case = _shown(plan, listed, request.text, calls.message([request.call]), rng)
        return {**case, "counts": self._tells(kind, request)}

    def _tells(self, kind: str, request: Request) -> bool:
        """Whether new values or names are in the request: one in six takes none at all, others only times or numbers."""
        kinds = request.function.kinds()
        said = [(kinds[slot], text) for slot, text in request.surfaces.items()]
        if kind == "values":
            return any(value_kind not in UNDIVIDED for value_kind, _ in said)
        return kind != "foreign" or any(text in self._names.get(value_kind, ()) for value_kind, text in said)

    def _refusal(self, generator: Generator, plan: Plan, rng: random.Random) -> Case:
        requests = generator.requests
        if rng.random() < 0.3:
            request = requests.outside(rng)
        else:
            request = requests.request(rng.choice(requests.asked), rng)
        return _shown(plan, requests.tool_list(plan, rng, request, present=False), request.text, REFUSAL, rng)

    def _draw(self, generator: Generator):
        """Names of other people where there are any of the kind, otherwise values of the split."""

        def draw(kind: str, rng: random.Random) -> Value:
            names = self._names.get(kind)
            if not names or kind in compose.CONVERTED:
                return generator.requests.draw(kind, rng)
            name = rng.choice(names)
            return Value(name, name)

        return draw


def _shown(plan: Plan, listed: list[Function], text: str, expected: str, rng: random.Random) -> Case:
    describe, wrap = rng.random() < plan.described, rng.random() < plan.wrapped
    tools = [calls.tool(function, describe, wrap) for function in listed]
    return {"tools": tools, "messages": [{"role": "user", "content": text}], "expected": expected, "counts": True}


def _independent_functions(functions: tuple[Function, ...], independent: dict) -> list[Function]:
    """The functions with the other authors' wordings, except those that ours hold word for word."""
    taken = {wording.text.casefold().strip(".?! ") for function in functions for wording in function.wordings}
    result = []
    for function in functions:
        entries = [
            entry if isinstance(entry, dict) else {"text": entry} for entry in independent.get(function.name, ())
        ]
        new = [entry for entry in entries if entry["text"].casefold().strip(".?! ") not in taken]
        wordings = tuple(Wording(entry["text"], entry.get("set", {})) for entry in new)
        if wordings:
            result.append(
                Function(function.name, function.description, function.parameters, wordings, function.outcomes)
            )
    return result

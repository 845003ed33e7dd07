"""The content files of folder data/ as objects: functions with their wordings, and everything said without a call."""

import json
import pathlib
import re
from dataclasses import dataclass, field, replace
from typing import Any, Mapping

from espalier_tools.train.nano.splits import split_of

FUNCTION_FILES = ("functions_a.json", "functions_b.json")
TALK_FILE = "talk.json"
INDEPENDENT_FILE = "independent.json"


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str  # as in JSON schema
    kind: str | None  # of values; None for booleans and enums, which wordings set
    description: str
    optional: bool = False
    enum: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wording:
    """A request with {parameter} slots, and the arguments that its words imply without a slot."""

    text: str
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a tool answers, and the assistant's sentence about it."""

    result: dict
    answer: str


@dataclass(frozen=True)
class Function:
    name: str
    description: str
    parameters: tuple[Parameter, ...]  # in schema order, which is the order of a call
    wordings: tuple[Wording, ...]
    outcomes: tuple[Outcome, ...] = ()
    foreign: bool = False  # from another corpus

    def kinds(self) -> dict[str, str]:
        """Slot -> kind of its values."""
        return {parameter.name: parameter.kind for parameter in self.parameters if parameter.kind}


@dataclass(frozen=True)
class Missing:
    """A request that lacks an argument, the assistant's question and the user's reply."""

    function: str
    user: str
    ask: str
    reply: str
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Content:
    """What a Generator draws from."""

    functions: tuple[Function, ...]
    refusals: tuple[str, ...]
    outside: tuple[str, ...]
    missing: tuple[Missing, ...]
    small_talk: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]  # user texts, assistant texts
    knowledge: tuple[tuple[str, str], ...]
    extraction: tuple[tuple[str, str], ...]

    def of_split(self, split: str) -> "Content":
        """Only the wordings of a split; the assistant's sentences belong to all. Functions may be left without wordings."""
        functions = tuple(
            replace(function, wordings=tuple(w for w in function.wordings if split_of(function.name, w.text) == split))
            for function in self.functions
        )
        talk = [
            (tuple(text for text in user if split_of("talk", text) == split), said) for user, said in self.small_talk
        ]
        return replace(
            self,
            functions=functions,
            outside=tuple(text for text in self.outside if split_of("outside", text) == split),
            missing=tuple(entry for entry in self.missing if split_of("missing", entry.user) == split),
            small_talk=tuple((user, said) for user, said in talk if user),
            knowledge=tuple(pair for pair in self.knowledge if split_of("knowledge", pair[0]) == split),
            extraction=tuple(pair for pair in self.extraction if split_of("extraction", pair[0]) == split),
        )


GLUED = re.compile(r"\{\w+\}[^\W\d_]|\w\{")  # "{name}s": where the value ends cannot be seen


def _wording(entry: str | dict) -> Wording:
    return Wording(entry) if isinstance(entry, str) else Wording(entry["text"], entry.get("set", {}))


def _parameter(name: str, entry: dict) -> Parameter:
    return Parameter(
        name,
        entry["type"],
        entry.get("kind"),
        entry["description"],
        entry.get("optional", False),
        tuple(entry.get("enum", ())),
    )


def _function(entry: dict) -> Function:
    return Function(
        entry["name"],
        entry["description"],
        tuple(_parameter(name, parameter) for name, parameter in entry["parameters"].items()),
        tuple(wording for wording in map(_wording, entry["requests"]) if not GLUED.search(wording.text)),
        tuple(Outcome(outcome["result"], outcome["answer"]) for outcome in entry["outcomes"]),
    )


def read_functions(folder: pathlib.Path) -> tuple[Function, ...]:
    """All functions of the functions files in their order."""
    read = [json.loads((folder / name).read_text("utf-8")) for name in FUNCTION_FILES if (folder / name).exists()]
    return tuple(_function(entry) for content in read for entry in content["functions"])


def read_content(folder: str | pathlib.Path) -> Content:
    """The content of a data folder; what talk.json lacks is empty."""
    folder = pathlib.Path(folder)
    talk = json.loads((folder / TALK_FILE).read_text("utf-8")) if (folder / TALK_FILE).exists() else {}
    missing = [
        Missing(m["function"], m["user"], m["ask"], m["reply"], m.get("set", {})) for m in talk.get("missing", ())
    ]
    return Content(
        functions=read_functions(folder),
        refusals=tuple(talk.get("refusals", ())),
        outside=tuple(talk.get("outside_requests", ())),
        missing=tuple(missing),
        small_talk=tuple((tuple(group["user"]), tuple(group["assistant"])) for group in talk.get("small_talk", ())),
        knowledge=tuple((pair["user"], pair["assistant"]) for pair in talk.get("knowledge", ())),
        extraction=tuple((pair["user"], pair["assistant"]) for pair in talk.get("extraction", ())),
    )

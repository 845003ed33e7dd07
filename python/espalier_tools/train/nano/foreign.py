"""Tools of the Berkeley function-calling leaderboard's data, so that names are read from the list and not remembered.

Only records of one call whose arguments stand word for word in the question are taken.
"""

import json
import pathlib
import re
from typing import Any, Iterator

from espalier_tools.train.nano.content import Function, Parameter, Wording
from espalier_tools.train.nano.splits import split_of
from espalier_tools.train.nano.values import usable

FILES = ("BFCL_v4_simple_python.json", "BFCL_v4_multiple.json", "BFCL_v4_live_simple.json")
TYPES = {"integer": "integer", "float": "number", "string": "string", "boolean": "boolean"}
LONGEST_TOOL, LONGEST_QUESTION = 700, 260  # characters
NUMBERS = {1: "percent", 2: "percent", 3: "amount", 4: "amount", 5: "amount"}  # digits -> kind of like size


def read_foreign(folder: str | pathlib.Path | None, split: str) -> tuple[Function, ...]:
    """The usable functions whose question belongs to the split; none where there is no folder."""
    if folder is None or not pathlib.Path(folder).exists():
        return ()
    functions = [function for name in FILES for function in _read(pathlib.Path(folder), name)]
    return tuple(function for function in functions if split_of("foreign", function.wordings[0].text) == split)


def _read(folder: pathlib.Path, name: str) -> Iterator[Function]:
    if not (folder / name).exists() or not (folder / "possible_answer" / name).exists():
        return
    answers = {}
    for line in (folder / "possible_answer" / name).read_text("utf-8").splitlines():
        answer = json.loads(line)
        answers[answer["id"]] = answer["ground_truth"]
    for line in (folder / name).read_text("utf-8").splitlines():
        record = json.loads(line)
        function = _function(record, answers.get(record["id"], []))
        if function is not None:
            yield function


def _function(record: dict, truth: list) -> Function | None:
    messages = record["question"][0]
    question = messages[0]["content"].strip()
    if (
        len(truth) != 1
        or len(messages) != 1
        or len(question) > LONGEST_QUESTION
        or not set("{}\n<|").isdisjoint(question)
    ):
        return None
    ((name, accepted),) = truth[0].items()
    tool = next((tool for tool in record["function"] if tool["name"] == name), None)
    if tool is None or len(json.dumps(tool)) > LONGEST_TOOL:
        return None
    parameters = _parameters(tool["parameters"])
    arguments = _arguments(question, accepted) if parameters is not None else None
    if arguments is None or not set(arguments) <= {parameter.name for parameter in parameters}:
        return None
    template, kinds = _template(question, arguments, parameters)
    known = [Parameter(p.name, p.type, kinds.get(p.name), p.description, p.optional, p.enum) for p in parameters]
    wordings = [Wording(question, arguments)]
    if kinds:
        wordings.append(Wording(template, {key: value for key, value in arguments.items() if key not in kinds}))
    return Function(
        name.replace(".", "_"), tool["description"].rstrip("."), tuple(known), tuple(wordings), foreign=True
    )


def _parameters(schema: dict) -> list[Parameter] | None:
    """The parameters, or None where one is not of a simple type."""
    required = schema.get("required", [])
    properties = schema["properties"]
    if any(entry["type"] not in TYPES or not name.isidentifier() for name, entry in properties.items()):
        return None
    return [
        Parameter(
            name,
            TYPES[entry["type"]],
            None,
            entry.get("description", ""),
            name not in required,
            tuple(entry.get("enum", ())),
        )
        for name, entry in properties.items()
    ]


def _occurs(value: Any, question: str) -> int:
    return len(re.findall(rf"(?<![\w.]){re.escape(str(value))}(?![\w]|\.\d)", question))


def _arguments(question: str, accepted: dict[str, list]) -> dict[str, Any] | None:
    """What the question gives word for word, or None where it requires something that is not in it."""
    arguments = {}
    for name, choices in accepted.items():
        plain = [
            choice
            for choice in choices
            if isinstance(choice, (str, int, float)) and not isinstance(choice, bool) and choice != ""
        ]
        given = [
            choice for choice in plain if (not isinstance(choice, str) or usable(choice)) and _occurs(choice, question)
        ]
        if given:
            arguments[name] = given[0]
        elif "" not in choices:
            return None
    return arguments


def _template(question: str, arguments: dict[str, Any], parameters: list[Parameter]) -> tuple[str, dict[str, str]]:
    """The question with slots for arguments that can be exchanged, and the slots' kinds."""
    kinds: dict[str, str] = {}
    enums = {parameter.name for parameter in parameters if parameter.enum}
    for name, value in arguments.items():
        if name in enums or isinstance(value, float) or _occurs(value, question) != 1:
            continue
        if sum(str(value) in str(other) for other in arguments.values()) > 1 or str(value) in " ".join(kinds):
            continue
        kind = _kind(name, value)
        if kind is not None:
            kinds[name] = kind
            question = re.sub(rf"(?<![\w.]){re.escape(str(value))}(?![\w]|\.\d)", f"{{{name}}}", question)
    return question, kinds


def _kind(name: str, value: Any) -> str | None:
    if isinstance(value, int):
        return NUMBERS.get(len(str(value))) if value > 0 else None
    if not re.search(r"[^\W\d]", value):
        return None
    if re.search(r"city|location|place|country|state|town", name):
        return "city"
    if re.search(r"name|person|player|artist|author|actor|composer", name):
        return "person" if value[:1].isupper() else "label"
    return "song" if value[:1].isupper() else "item"


def stems(text: str) -> set[str]:
    """Beginnings of the words of a text or identifier, by which a request and a tool are found to be about one thing."""
    words = re.findall(r"[A-Za-z][a-z]+", text.replace("_", " "))
    return {word.lower()[:5] for word in words if len(word) > 3} - COMMON


COMMON = {word[:5] for word in """
with from that this what when where which your about into have will name given specific based value values the number find calculate
retrieve information details user function using between their specified list data some please would could need want there tell
""".split()}

"""Conversations for training: deterministic in (seed, index, stage), so that nothing has to be stored."""

import json
import pathlib
import random
import re
from typing import Any, Callable, Sequence

from espalier_tools.train.nano import calls, plans, surface
from espalier_tools.train.nano.content import Function, Outcome
from espalier_tools.train.nano.fill import Unfillable, fill
from espalier_tools.train.nano.plans import Plan
from espalier_tools.train.nano.requests import Request, Requests

Conversation = dict[str, Any]
Messages = list[dict[str, str]]
Turn = tuple[str, Messages]  # kind and messages

TALK, QUESTION, EXTRACTION, OUTSIDE = "talk", "question", "extraction", "outside"  # what is asked for, if not a function
OPEN_ENDED = surface.FREE_TEXT - {"label", "song", "item"}  # may not be followed by "and" and a second request


class Generator:
    """Draws conversations of one split of wordings and one of values; immutable.

    words: the large word list (words.read_words); foreign: folder of the leaderboard's data, or None.
    """

    def __init__(
        self,
        data_folder: str | pathlib.Path,
        words: Sequence[str],
        wordings: str = "train",
        values: str = "train",
        foreign: str | pathlib.Path | None = None,
    ):
        self.requests = Requests(data_folder, words, wordings, values, foreign)
        self.content = self.requests.content

    def conversation(self, index: int, seed: int = 0, stage: str | Plan = "2") -> Conversation:
        """The conversation of an index: tools, messages, kinds of its turns."""
        plan, name = (plans.PLANS[stage], stage) if isinstance(stage, str) else (stage, "plan")
        rng = random.Random(f"{seed}/{name}/{index}")
        shared = random.Random(f"{seed}/{name}/twin/{index // 2 % plans.TWINS}")
        twin = None
        if shared.random() < plan.twins:
            twin = self.requests.request(self.requests.function(plan, shared), shared)
        bare = twin is None and rng.random() < plan.bare
        tools = [] if bare or plan.tools[1] == 0 else self.requests.tool_list(plan, rng, twin, index % 2 == 0)
        turns = self._turns(plan, tools, rng, bare)
        if twin is not None:
            turns[rng.randrange(len(turns))] = self._twin(twin, tools, rng)
        describe, wrap = rng.random() < plan.described, rng.random() < plan.wrapped
        return {
            "tools": [calls.tool(tool, describe, wrap) for tool in tools],
            "messages": [message for _, messages in turns for message in messages],
            "kinds": [kind for kind, _ in turns],
        }

    def _turns(self, plan: Plan, tools: list[Function], rng: random.Random, bare: bool) -> list[Turn]:
        weights = plan.bare_weights if bare else plan.weights
        kinds = [kind for kind in weights if self._has(kind, tools)]
        drawn = rng.choices(kinds, [weights[kind] for kind in kinds], k=rng.randint(*plan.turns))
        return [self._turn(kind, plan, tools, rng) for kind in drawn]

    def _twin(self, twin: Request, tools: list[Function], rng: random.Random) -> Turn:
        """The shared request: called where its tool is in the list, otherwise refused."""
        if all(tool.name != twin.function.name for tool in tools):
            return self._refused(twin, rng)
        return self._asked("result" if twin.function.outcomes and rng.random() < 0.15 else "call", twin, rng)

    def _has(self, kind: str, tools: list[Function]) -> bool:
        """Whether the content and the list allow a turn of a kind."""
        if kind == "refusal":
            return bool(self.content.refusals and tools)
        if kind in ("small_talk", "knowledge", "extraction"):
            return bool(getattr(self.content, kind))
        if kind == "missing":
            return any(entry.function == tool.name for entry in self.content.missing for tool in tools)
        if kind == "result":
            return any(tool.outcomes and tool.wordings for tool in tools)
        return not tools or any(tool.wordings for tool in tools)

    def _turn(self, kind: str, plan: Plan, tools: list[Function], rng: random.Random) -> Turn:
        makers: dict[str, Callable[[], Turn]] = {
            "call": lambda: self._called(plan, tools, rng),
            "result": lambda: self._with_result(tools, rng),
            "missing": lambda: self._missing(tools, rng),
            "refusal": lambda: self._refusal(tools, rng),
            "small_talk": lambda: self._small_talk(rng),
            "knowledge": lambda: ("knowledge", exchange(*rng.choice(self.content.knowledge), QUESTION)),
            "extraction": lambda: self._extraction(rng),
        }
        return makers[kind]()

    def _called(self, plan: Plan, tools: list[Function], rng: random.Random) -> Turn:
        listed = [tool for tool in tools if tool.wordings]
        double = rng.random() < plan.double

        def one() -> Request:
            function = rng.choice(listed) if listed else self.requests.function(plan, rng)
            return self.requests.request(function, rng, vary=not double)

        first = one()
        for _ in range(8 if double else 0):
            second = one()
            if _joinable(first, second):
                text = f"{first.text.rstrip('.!')} and {surface.lower_first(second.text)}"
                return "call", exchange(text, calls.message([first.call, second.call]), first.function.name)
        return self._asked("call", first, rng)

    def _with_result(self, tools: list[Function], rng: random.Random) -> Turn:
        function = rng.choice([tool for tool in tools if tool.outcomes and tool.wordings])
        return self._asked("result", self.requests.request(function, rng), rng)

    def _asked(self, kind: str, request: Request, rng: random.Random) -> Turn:
        messages = exchange(request.text, calls.message([request.call]), request.function.name)
        if kind == "result":
            result, answer = told(rng.choice(request.function.outcomes), request, rng)
            messages += [{"role": "tool", "content": result}, {"role": "assistant", "content": answer}]
        return kind, messages

    def _missing(self, tools: list[Function], rng: random.Random) -> Turn:
        names = {tool.name for tool in tools}
        entries = [entry for entry in self.content.missing if entry.function in names]
        for _ in range(20):
            entry = rng.choice(entries)
            try:
                asked = self.requests.partial(entry, rng)
                reply = fill(entry.reply, asked.function.kinds(), self.requests.draw, rng)
            except Unfillable:
                continue
            call = calls.call(asked.function, {**asked.arguments, **reply.arguments})
            ask = surface.SLOT.sub(lambda slot: asked.surfaces[slot.group(1)], entry.ask)
            return "missing", exchange(asked.text, ask) + exchange(reply.text, calls.message([call]))
        raise Unfillable("missing: expected one of 20 entries to take a value")

    def _refusal(self, tools: list[Function], rng: random.Random) -> Turn:
        for _ in range(50):
            request = self.requests.unlisted(tools, rng)
            if request is not None:
                return self._refused(request, rng)
        return self._called(plans.PLANS["2"], tools, rng)  # the list serves everything there is

    def _refused(self, request: Request, rng: random.Random) -> Turn:
        return "refusal", exchange(request.text, rng.choice(self.content.refusals), request.function.name or OUTSIDE)

    def _small_talk(self, rng: random.Random) -> Turn:
        user, said = rng.choice(self.content.small_talk)
        return "small_talk", exchange(surface.vary(rng.choice(user), {}, rng), rng.choice(said), TALK)

    def _extraction(self, rng: random.Random) -> Turn:
        for _ in range(20):
            user, said = rng.choice(self.content.extraction)
            try:
                filled = fill(user, {}, self.requests.draw, rng)
            except Unfillable:
                continue
            answer = surface.SLOT.sub(lambda slot: filled.surfaces[slot.group(1)], said)
            return "extraction", exchange(filled.text, answer, EXTRACTION)
        raise Unfillable("extraction: expected one of 20 patterns to take a value")


def exchange(user: str, assistant: str, intent: str | None = None) -> Messages:
    """A user's message and the answer; `intent`: the function that is asked for, in the list or not, or the kind of talk."""
    said = {"role": "user", "content": user} | ({"intent": intent} if intent else {})
    return [said, {"role": "assistant", "content": assistant}]


def _joinable(first: Request, second: Request) -> bool:
    """Whether two requests make one sentence with "and": our own, different, an imperative behind, no free text before."""
    if first.function.name == second.function.name or first.function.foreign or second.function.foreign:
        return False
    if not surface.is_imperative(second.text) or first.text.endswith("?") or len(first.text) + len(second.text) > 160:
        return False
    kinds, body = first.function.kinds(), first.text.rstrip(".!")
    return not any(kinds[slot] in OPEN_ENDED and body.endswith(text) for slot, text in first.surfaces.items())


def told(outcome: Outcome, request: Request, rng: random.Random) -> tuple[str, str]:
    """The tool's JSON and the assistant's sentence; numbers that the sentence repeats are drawn anew, so that it is read."""
    result, answer = dict(outcome.result), outcome.answer
    flat = not any(isinstance(value, (list, dict)) for value in result.values())
    for key, value in result.items():
        number = rf"(?<![\d.,:]){value}(?![\d:]|[.,]\d)"
        if flat and type(value) is int and value > 2 and len(re.findall(number, answer)) == 1:
            result[key] = rng.randrange(3, 10 ** len(str(value)))
            answer = re.sub(number, str(result[key]), answer)
    answer = surface.SLOT.sub(lambda slot: request.surfaces[slot.group(1)], answer)
    return json.dumps(_placed(result, request.arguments), ensure_ascii=False), answer


def _placed(value: Any, arguments: dict[str, Any]) -> Any:
    """A result with its slots filled; a slot alone keeps the argument's type."""
    if isinstance(value, dict):
        return {key: _placed(item, arguments) for key, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, arguments) for item in value]
    if not isinstance(value, str):
        return value
    alone = surface.SLOT.fullmatch(value)
    return arguments[alone.group(1)] if alone else surface.SLOT.sub(lambda slot: str(arguments[slot.group(1)]), value)

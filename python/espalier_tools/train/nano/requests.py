"""Requests of users, and lists of tools that hold what is asked for or nothing like it."""

import pathlib
import random
import re
from dataclasses import dataclass, replace
from typing import Any, Sequence

from espalier_tools.train.nano import calls, plans, surface
from espalier_tools.train.nano.content import Content, Function, Missing, read_content
from espalier_tools.train.nano.fill import Draw, Filled, Unfillable, fill, kind_of_slot
from espalier_tools.train.nano.foreign import read_foreign, stems
from espalier_tools.train.nano.plans import Plan
from espalier_tools.train.nano.values import Value, Values

NOTHING = Function("", "", (), ())  # what an outside request asks for


@dataclass(frozen=True)
class Request:
    """A user's text and the call it asks for."""

    function: Function
    text: str
    arguments: dict[str, Any]
    surfaces: dict[str, str]  # slot -> as the text has it
    stems: frozenset[str]  # of the wording, not of the values

    @property
    def call(self) -> str:
        return calls.call(self.function, self.arguments)


def _request(function: Function, wording: str, fixed: dict[str, Any], filled: Filled) -> Request:
    about = frozenset(stems(surface.SLOT.sub(" ", wording)))
    return Request(function, filled.text, {**fixed, **filled.arguments}, filled.surfaces, about)


class Requests:
    """Requests and lists of one split of wordings and one of values; immutable."""

    def __init__(
        self,
        data_folder: str | pathlib.Path,
        words: Sequence[str],
        wordings: str,
        values: str,
        foreign: str | pathlib.Path | None,
    ):
        self.content: Content = read_content(data_folder).of_split(wordings)
        self.by_name = {function.name: function for function in self.content.functions}
        self.asked = [function for function in self.content.functions if function.wordings]
        self.foreign = [function for function in read_foreign(foreign, wordings) if function.name not in self.by_name]
        self._values, self._value_split = Values(words), values
        self._near: dict[str, list[str]] = {
            name: [
                other
                for group in plans.NEAR
                if name in group
                for other in group
                if other != name and other in self.by_name
            ]
            for name in self.by_name
        }
        self._stems = {
            f.description: stems(f"{f.name} {f.description}") for f in (*self.content.functions, *self.foreign)
        }

    def draw(self, kind: str, rng: random.Random) -> Value:
        """A value of the split."""
        return self._values.draw(kind, self._value_split, rng)

    def function(self, plan: Plan, rng: random.Random) -> Function:
        """A function that has wordings, from the other corpus in the plan's share."""
        if self.foreign and rng.random() < plan.foreign:
            return restyled(rng.choice(self.foreign), rng)
        return rng.choice(self.asked)

    def request(self, function: Function, rng: random.Random, draw: Draw | None = None, vary: bool = True) -> Request:
        """One request for a function that has wordings."""
        kinds = function.kinds()
        for _ in range(20):
            wording = rng.choice(function.wordings)
            text = surface.vary(wording.text, kinds, rng) if vary and not function.foreign else wording.text
            try:
                return _request(function, wording.text, dict(wording.fixed), fill(text, kinds, draw or self.draw, rng))
            except Unfillable:
                continue
        raise Unfillable(f"{function.name}: expected one of 20 wordings to take a value; write clearer ones")

    def outside(self, rng: random.Random) -> Request:
        """A request for which there is no function at all."""
        for _ in range(20):
            wording = rng.choice(self.content.outside)
            kinds = {slot: kind_of_slot(slot) for slot in surface.SLOT.findall(wording)}
            try:
                return _request(NOTHING, wording, {}, fill(surface.vary(wording, kinds, rng), kinds, self.draw, rng))
            except Unfillable:
                continue
        raise Unfillable("outside requests: expected one of 20 to take a value")

    def partial(self, entry: Missing, rng: random.Random) -> Request:
        """A request that lacks an argument."""
        function = self.by_name[entry.function]
        kinds = function.kinds()
        return _request(
            function, entry.user, dict(entry.fixed), fill(surface.vary(entry.user, kinds, rng), kinds, self.draw, rng)
        )

    def tool_list(
        self, plan: Plan, rng: random.Random, request: Request | None = None, present: bool = False
    ) -> list[Function]:
        """Distinct functions; `present` says whether the request's own is one of them.

        Where it is absent, half of the lists hold a near miss, and no function of another corpus that may do the same work.
        """
        count = rng.randint(*plan.tools)
        chosen: list[Function] = [request.function] if request and present else []
        names = {request.function.name} if request else set()
        if request and not present and rng.random() < 0.5:
            near = self._near.get(request.function.name)
            chosen += [self.by_name[rng.choice(near)]] if near else []
        names |= {function.name for function in chosen}
        while len(chosen) < count:
            function = self.function(plan, rng)
            serves = request is not None and not present and self.alike(request, function)
            if function.name not in names and not serves and not any(_rivals(function, other) for other in chosen):
                chosen.append(function)
                names.add(function.name)
        rng.shuffle(chosen)
        return chosen

    def unlisted(self, tools: list[Function], rng: random.Random) -> Request | None:
        """A request that no tool of the list serves: outside, of another corpus, partial, near or far; None if one does."""
        names = {tool.name for tool in tools}
        roll = rng.random()
        try:
            if roll < 0.3 and self.content.outside:
                request = self.outside(rng)
            elif roll < 0.38 and self.foreign:
                request = self.request(rng.choice(self.foreign), rng)
            elif roll < 0.44 and self.content.missing:
                request = self.partial(rng.choice(self.content.missing), rng)
            else:
                near = [
                    self.by_name[name]
                    for tool in tools
                    for name in self._near.get(tool.name, ())
                    if self.by_name[name].wordings
                ]
                request = self.request(rng.choice(near if near and rng.random() < 0.5 else self.asked), rng)
        except Unfillable:
            return None
        return None if request.function.name in names or any(self.alike(request, tool) for tool in tools) else request

    def alike(self, request: Request, function: Function) -> bool:
        """Whether a function might do what is asked although it is another; only our own are known to be apart."""
        if not request.function.foreign and not function.foreign:
            return False
        mine, theirs = self._stems.get(request.function.description, set()), self._stems[function.description]
        return not theirs.isdisjoint(request.stems | mine)


def _rivals(one: Function, other: Function) -> bool:
    """Whether two functions might answer the same request; among our own, their authors kept them apart."""
    return (one.foreign or other.foreign) and not stems(one.name).isdisjoint(stems(other.name))


def restyled(function: Function, rng: random.Random) -> Function:
    """One in four with its name in another fashion (camelCase), since a name has to be read and not remembered."""
    if rng.random() > 0.25:
        return function
    name = re.sub(r"_+([A-Za-z])", lambda match: match.group(1).upper(), function.name)
    return replace(function, name=name[:1].lower() + name[1:])

"""Other names for tools, so that nano reads names from the list, and knows by the description whether a tool fits.

With forty-six names that never change a small model remembers them, calls what is not in the list, and never refuses.
"""

import random
import re
from collections.abc import Sequence

from espalier_tools.train.nano import calls

STOP_WORDS = {"a", "an", "the", "of", "for", "in", "on", "or", "to", "with", "and", "its", "from", "one", "off"}
CONVERSATIONS = 0.5  # share whose tools have other names
TOOLS = 0.8  # share of the tools in such a conversation


def _of_description(description: str, rng: random.Random) -> list[str]:
    found = [word.lower() for word in re.findall(r"[A-Za-z]+", description) if word.lower() not in STOP_WORDS]
    return rng.sample(found, min(len(found), rng.choice((2, 2, 3)))) or ["tool"]


def alias(name: str, description: str, words: Sequence[str], rng: random.Random) -> str:
    """Words of the description, of the name in another order, or any words, in one of three fashions."""
    draw = rng.random()
    if draw < 0.45:
        parts = _of_description(description, rng)
    elif draw < 0.7:
        parts = rng.sample(re.findall(r"[a-z]+", name.lower()) + [rng.choice(("do", "my", "app", "v"))], 2)
    else:
        parts = [word for word in rng.sample(words, 2) if word.isascii() and word.isalpha()] or ["tool"]
    if rng.random() < 0.25:
        return parts[0] + "".join(part.capitalize() for part in parts[1:])
    return "_".join(parts)


def renamed(conversation: dict, words: Sequence[str], rng: random.Random) -> dict:
    """The conversation with other names for most of its tools, in the list and in the calls; "origins" has the old ones."""
    if not conversation["tools"] or rng.random() >= CONVERSATIONS:
        return conversation
    inner = [tool.get("function", tool) for tool in conversation["tools"]]
    taken = {tool["name"] for tool in inner}
    names = {}
    for tool in inner:
        other = alias(tool["name"], tool["description"], words, rng)
        if rng.random() < TOOLS and other not in taken:
            names[tool["name"]] = other
            taken.add(other)
    tools = [
        {**outer, "function": _with_name(outer["function"], names)} if "function" in outer else _with_name(outer, names)
        for outer in conversation["tools"]
    ]
    messages = [{**message, "content": _in_calls(message["content"], names)} for message in conversation["messages"]]
    return {**conversation, "tools": tools, "messages": messages, "origins": [tool["name"] for tool in inner]}


def _with_name(tool: dict, names: dict[str, str]) -> dict:
    return {**tool, "name": names.get(tool["name"], tool["name"])}


def _in_calls(content: str, names: dict[str, str]) -> str:
    if not content.startswith(calls.START):
        return content
    return re.sub(r"(?<=[\[ ])(\w+)\(", lambda found: names.get(found[1], found[1]) + "(", content)

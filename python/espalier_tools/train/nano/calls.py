"""Tools as JSON schema and calls as text, in the one form that the model learns."""

import ast
from typing import Any

from espalier_tools.train.nano.content import Function

START, END = "<|tool_call_start|>", "<|tool_call_end|>"


def tool(function: Function, describe: bool, wrap: bool) -> dict:
    """The tool's JSON; `describe` adds descriptions of parameters, `wrap` the outer object of the OpenAI API."""
    properties = {}
    for parameter in function.parameters:
        entry: dict[str, Any] = {"type": parameter.type}
        if parameter.enum:
            entry["enum"] = list(parameter.enum)
        if describe:
            entry["description"] = parameter.description
        properties[parameter.name] = entry
    required = [parameter.name for parameter in function.parameters if not parameter.optional]
    schema = {"type": "object", "properties": properties, "required": required}
    inner = {"name": function.name, "description": function.description, "parameters": schema}
    return {"type": "function", "function": inner} if wrap else inner


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def call(function: Function, arguments: dict[str, Any]) -> str:
    """`set_timer(duration_minutes=25, label="pasta")`, parameters in schema order."""
    given = [f"{p.name}={_literal(arguments[p.name])}" for p in function.parameters if p.name in arguments]
    return f"{function.name}({', '.join(given)})"


def message(calls: list[str]) -> str:
    """The assistant's text for one or more calls."""
    return f"{START}[{', '.join(calls)}]{END}"


def parse(text: str) -> list[tuple[str, dict[str, Any]]] | None:
    """Names and arguments of the calls in a text, or None where it is not exactly one list of calls."""
    if not (text.startswith(START) and text.endswith(END)):
        return None
    try:
        tree = ast.parse(text[len(START) : -len(END)], mode="eval").body
        return [
            (ast.unparse(node.func), {word.arg: ast.literal_eval(word.value) for word in node.keywords})
            for node in tree.elts
        ]
    except (SyntaxError, ValueError, AttributeError):
        return None

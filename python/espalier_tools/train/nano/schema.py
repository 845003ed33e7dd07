"""python -m espalier_tools.train.nano.schema > docs/nano-schema.md: the functions that nano knows, from the content files."""

import pathlib
import random
import sys

from espalier_tools.train.nano import compose
from espalier_tools.train.nano.content import Function, Parameter, read_functions
from espalier_tools.train.nano.values import STYLES, Values

DATA = pathlib.Path(__file__).parent / "data"

FORMS = {
    "minutes": "digits, 1 to 180",
    "percent": "digits, 0 to 100",
    "degrees": "digits",
    "amount": "digits, at least 1",
    "time": "`7:30 am`, `6 pm` or `19:45`; the call holds 24-hour `HH:MM`",
    "date": "a day as the user names it",
    "currency": "a name in the plural or a code; the call holds the code",
    "language": "the language's name",
    "phone": "a number as the user writes it",
    "expression": "arithmetic in digits and operators",
}

INTRODUCTION = """# What nano can be asked to do

Generated from `python/espalier_tools/train/nano/data` by `python -m espalier_tools.train.nano.schema`; do not edit.

A request for a function that is not in the list of tools is refused with a sentence that begins with "I can't". An argument
marked `?` is in a call if and only if the request gives it. Strings are copied from the request letter for letter, except
where the table of values says otherwise; the marks `" \\ { } [ ] = |` do not occur in them. A call is
`<|tool_call_start|>[name(parameter="text", other=5)]<|tool_call_end|>`, parameters in the order below.
"""


def _argument(parameter: Parameter) -> str:
    mark = "?" if parameter.optional else ""
    values = " or ".join(f"`{value}`" for value in parameter.enum) or parameter.kind or "true or false"
    return f"`{parameter.name}{mark}`: {parameter.type}, {values}"


def _row(function: Function) -> str:
    arguments = "; ".join(map(_argument, function.parameters)) or "none"
    example = function.wordings[0].text.replace("|", "\\|")
    return f"| `{function.name}` | {function.description} | {arguments} | {example} |"


def _value_rows(functions: tuple[Function, ...]) -> list[str]:
    """One row a kind, with examples drawn with a fixed seed."""
    values, rows = Values(()), []
    for kind in sorted({kind for function in functions for kind in function.kinds().values()}):
        rng = random.Random(kind)
        drawn = [values.draw(kind, "train", rng) for _ in range(3)]
        shown = [f"`{v.surface}`" + (f" → `{v.canonical}`" if v.surface != str(v.canonical) else "") for v in drawn]
        form = FORMS.get(kind, "copied" if kind in STYLES or kind in compose.NATURAL else "")
        rows.append(f"| {kind} | {form} | {', '.join(shown)} |")
    return rows


def document(folder: pathlib.Path = DATA) -> str:
    functions = read_functions(folder)
    lines = [
        INTRODUCTION,
        f"## {len(functions)} functions",
        "",
        "| Function | What it does | Arguments | A request |",
        "|---|---|---|---|",
    ]
    lines += map(_row, functions)
    lines += [
        "",
        "## Values",
        "",
        "| Kind | Form | Examples (many training values are made-up words) |",
        "|---|---|---|",
    ]
    return "\n".join([*lines, *_value_rows(functions)]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())

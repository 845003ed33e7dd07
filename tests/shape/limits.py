"""No function above 70 lines and no file above 800: the tail is where code stops being readable."""

import ast
import re
from typing import Iterator

import sources
from sources import Finding

FUNCTION_LINES = 70
FILE_LINES = 800

# What stands before a brace that opens a scope whose own members are looked at one by one.
SCOPE = re.compile(r"^\s*(template\s*<.*>\s*)?(inline\s+)?(namespace|class|struct|union|extern)\b", re.DOTALL)


def is_body(head: str) -> bool:
    """Whether the brace after `head` opens a function's body (or an initialiser, which has no functions either)."""
    return not SCOPE.search(re.sub(r"\b(public|protected|private):", "", head)) or bool(re.search(r"[=)]\s*\w*\s*$", head))


def cpp_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """(head, first line, last line) of each function body at namespace or class scope.

    Braces are matched after comments, literals and directives are blanked; what is inside a body is not looked at.
    """
    code = sources.blank_cpp(text, "comment", "raw", "string", "character", "directive")
    depth_of_body = 0  # braces open inside the current body; 0 outside of any
    statement = body_start = 0
    for match in re.finditer(r"[{};]", code):
        symbol, offset = match.group(), match.start()
        if depth_of_body:
            depth_of_body += {"{": 1, "}": -1, ";": 0}[symbol]
            if depth_of_body or code[offset + 1 :].lstrip()[:1] in (",", "{"):  # a_{1}, b_{2} { body }
                continue
            head = code[statement:body_start]
            if "(" in head:
                first = statement + len(head) - len(head.lstrip())
                yield " ".join(head.split()), sources.line_of(code, first), sources.line_of(code, offset)
        elif symbol == "{" and is_body(code[statement:offset]):
            depth_of_body, body_start = 1, offset
            continue
        statement = offset + 1


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno or node.lineno


def check() -> Iterator[Finding]:
    for path in sources.files(*sources.CPP, *sources.PYTHON, *sources.CMAKE):
        if path in sources.GENERATED:
            continue
        text = sources.read(path)
        lines = text.count("\n")
        if lines > FILE_LINES:
            advice = "Split it by what a reader looks for, or list a generated table in tests/shape/sources.py."
            yield Finding(path, lines, f"a file of {lines} lines; at most {FILE_LINES}", advice)
        functions = {".py": python_functions}.get(path[-3:], cpp_functions) if not path.endswith(sources.CMAKE) else None
        for head, first, last in functions(text) if functions else ():
            if last - first + 1 > FUNCTION_LINES:
                rule = f"a function of {last - first + 1} lines; at most {FUNCTION_LINES}: {head[-60:]}"
                yield Finding(path, first, rule, "Push ifs up, fors down, and name the parts.")

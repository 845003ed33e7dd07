"""Short templates, one for each rule of the language: what statements, operators, filters, tests and methods do,
and what they refuse. jinja_templates/expressions.txt has one expression a line, statements.txt one template
between two lines with a section sign."""

import pathlib

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello, <World> & 'all' — naïve café 🙂"},
    {"role": "assistant", "content": "Hi\n  there\n", "tool_calls": [{"function": {"name": "f", "arguments": {"b": 1, "a": [1, 2.5, None, True]}}}]},
]

VARIABLES = {
    "s": "Hello World", "t": "  padded text\t\n", "u": "ǅungla ß ﬁn ΑΣ İstanbul", "e": "", "multi": "a\nb\r\n\nc", "csv": "a,b,,c",
    "n": 7, "z": 0, "neg": -13, "f": 2.5, "big": 1e20, "tiny": 1.5e-7, "yes": True, "no": False, "nothing": None,
    "xs": [3, 1, 2], "ys": ["b", "A", "c", "B"], "empty": [], "mixed": [1, "a", None, 2.5, True, [1], {"k": 1}],
    "d": {"b": 2, "a": 1, "C": 3, "items": "shadow", "get": 5}, "nested": {"x": {"y": [10, {"z": "deep"}]}},
    "users": [{"name": "bob", "age": 30, "city": {"n": "Ulm"}}, {"name": "Al", "age": 25, "city": {"n": "Bonn"}}, {"name": "cy", "age": 30}],
    "pairs": [["k1", 1], ["k2", 2]], "html": "<b>\"x\" & 'y'</b>", "numbers": [1, 2, 3, 4, 5, 6, 7],
}

FOLDER = pathlib.Path(__file__).parent / "jinja_templates"
TEMPLATES = ["{{ " + line + " }}" for line in (FOLDER / "expressions.txt").read_text().rstrip("\n").split("\n")]
TEMPLATES += (FOLDER / "statements.txt").read_text()[:-1].split("\n§\n")
TEMPLATES += ["a\r\nb\rc{% if 1 %}\r\nd{% endif %}\r\n", "a\n", "a\n\n", "\n", "", "{{ s }}\n"]

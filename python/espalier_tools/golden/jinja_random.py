"""Random templates: expressions of every kind over known variables, inside of random statements with random
white space control. Deterministic in the seed."""

import random

STRINGS = ["s", "t", "u", "e", "multi", "csv", "html", "messages[0].content", "messages[1]['content']", "m.role", "m['content']"]
NUMBERS = ["n", "z", "neg", "f", "yes", "xs[0]", "loop.index", "loop.index0", "numbers|length"]
LISTS = ["xs", "ys", "empty", "mixed", "users", "pairs", "numbers", "messages", "d.keys()", "d.items()", "s.split()", "range(4)"]
DICTS = ["d", "nested", "users[0]", "messages[2]", "m", "ns"]
NAMES = ["missing", "nothing", "no", "v", "w", "x", "loop", "tools"]
TEXT = ["a", "Hello", " ", "\n", "  \n", "x\n\n", "<|im_start|>", "é🙂", "\t", "{", "}", "%", "{ {", "#}", "- ", "text here\n  "]

STRING_FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "list", "reverse", "first", "last", "wordcount", "string",
                  "tojson", "e", "indent(2)", "indent(1, true)", "replace('l', 'L')", "replace('a', 'bb', 1)", "truncate(6)",
                  "truncate(5, true)", "center(9)", "default('D')", "default('D', true)", "int", "float", "urlencode", "striptags", "trim('dH')",
                  "join('-')", "batch(2)|list", "unique|list", "sort", "max", "min", "map('upper')|join", "select('in', 'abc')|list", "safe"]
NUMBER_FILTERS = ["abs", "round", "round(1)", "int", "float", "string", "default(3)", "tojson", "filesizeformat", "round(1, 'floor')", "e", "length", "upper"]
LIST_FILTERS = ["length", "first", "last", "join", "join(', ')", "list", "reverse|list", "sort", "unique|list", "min", "max", "sum", "tojson", "string",
                "map('string')|list", "map('upper')|join(' ')", "map(attribute='name')|list", "map(attribute='role')|join('/')",
                "select|list", "select('string')|list", "reject('none')|list", "selectattr('age')|list", "selectattr('role', 'equalto', 'user')|list",
                "rejectattr('age', 'defined')|list", "batch(2)|list", "batch(2, 0)|list", "slice(2)|list", "sort(reverse=true)",
                "map('length')|list", "default([])", "map('int')|sum", "first|default('none')", "count", "tojson(indent=1)", "map('tojson')|join(',')",
                "sort(attribute='name')|map(attribute='name')|list", "groupby('age')|map('first')|list", "map('first')|list"]
DICT_FILTERS = ["length", "list", "dictsort", "items|list", "tojson", "tojson(indent=2)", "string", "first", "default(1)", "tojson(sort_keys=true)", "join(',')", "dictsort(by='value')",
                "items|map('last')|list"]
METHODS = ["upper()", "lower()", "strip()", "split()", "split('o')", "split(',', 1)", "title()", "startswith('H')", "endswith('d')", "replace('o', '0')",
           "find('o')", "count('l')", "lstrip()", "rstrip()", "isupper()", "isdigit()", "splitlines()", "zfill(8)", "partition(' ')", "rsplit(None, 1)",
           "capitalize()", "join(['x', 'y'])", "format(1)", "swapcase()", "strip('H ')", "removeprefix('He')", "nope()", "index('o')", "center(11, '*')"]
TESTS = ["defined", "undefined", "none", "string", "number", "mapping", "sequence", "iterable", "boolean", "integer", "float", "true", "false", "odd", "even",
         "divisibleby 3", "eq 7", "in [1, 7]", "lower", "upper", "callable", "escaped", "sameas true", "gt 2", "not none", "not string", "not defined"]
SUBSCRIPTS = ["[0]", "[-1]", "[1:]", "[:2]", "[::-1]", "[1:3]", "['a']", "['name']", ".name", ".a", ".items", ".0", "[n]", "[::2]", "[-2:]", ".x.y", "['x']['y']"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in", "not in"]

ANY_TO_STRING = ['string', 'tojson', 'tojson(indent=2)', "default('q')"]
TRUNCATE_ARGUMENTS = ['5', '9, true', "7, false, '..', 0"]
PADDINGS = ['ljust(8)', "rjust(8, '.')", 'zfill(8)', "center(9, '*')", "removeprefix('H')", "strip('Hd ')", 'expandtabs(3)']
STRING_LIST_FILTERS = ['sort', 'unique|list', 'reverse|list', 'batch(2)|list', 'slice(2)|list', "map('upper')|list", 'sort(case_sensitive=true)', 'groupby(0)|list']
NUMBER_LIST_FILTERS = ["select('odd')|list", "reject('even')|list", "select('gt', 3)|list", 'batch(3, 0)|list', "map('string')|list", 'sort(reverse=true)']
SPLIT_ARGUMENTS = ['', "','", "' ', 1", 'None, 1']
USER_FILTERS = ["sort(attribute='age,name')", "groupby('age')", "selectattr('city')|list", "rejectattr('age', 'gt', 26)|list", "map(attribute='city.n', default=0)|list"]
DICT_LISTS = ['dictsort', 'items|list', 'list', "dictsort(true, 'value')"]


class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.in_loop = 0
        self.macros = []

    def pick(self, items):
        return self.rng.choice(items)

    def literal(self):
        return self.pick(["0", "1", "2", "7", "-3", "2.5", "1e3", "0.1", "'a'", "'o'", "'Hello'", "\"it's\"", "'\\n'", "''", "true", "false", "none",
                          "[]", "[1, 'b']", "{}", "{'a': 1, 'k': 'v'}", "(1, 2)", "(1,)", "[[1, 2], [3]]"])

    def atom(self):
        kind = self.rng.random()
        if kind < 0.25:
            return self.literal()
        if kind < 0.45:
            return self.pick(STRINGS)
        if kind < 0.6:
            return self.pick(NUMBERS)
        if kind < 0.78:
            return self.pick(LISTS)
        if kind < 0.9:
            return self.pick(DICTS)
        return self.pick(NAMES)

    def number(self, depth):
        if depth <= 0 or self.rng.random() < 0.3:
            return self.pick(["1", "2", "7", "-3", "2.5", "n", "neg", "f", "xs[0]", "xs|length", "s|length", "loop.index" if self.in_loop else "n", "ns.a"])
        return self.pick([
            lambda: f"{self.number(depth - 1)} {self.pick(['+', '-', '*', '//', '%', '/'])} {self.number(depth - 1)}",
            lambda: f"({self.number(depth - 1)})|{self.pick(['abs', 'int', 'round', 'float', 'round(1)'])}",
            lambda: f"{self.list(depth - 1)}|length",
            lambda: f"({self.string(depth - 1)})|length",
            lambda: f"({self.string(depth - 1)}).{self.pick(['find', 'count', 'rfind'])}({self.string(0)})",
            lambda: f"xs|{self.pick(['sum', 'max', 'min', 'first', 'last'])}",
            lambda: f"-{self.number(0)}",
        ])()

    def string(self, depth):
        if depth <= 0 or self.rng.random() < 0.25:
            return self.pick(["s", "t", "u", "e", "multi", "csv", "html", "'a'", "'o'", "' '", "'\\n'", "'Hello'", "messages[1].content", "messages[0]['role']"])
        return self.pick([
            lambda: f"{self.string(depth - 1)} {self.pick(['~', '+'])} {self.string(depth - 1)}",
            lambda: f"{self.string(depth - 1)} ~ {self.number(depth - 1)}",
            lambda: f"({self.string(depth - 1)})|{self.pick(['upper', 'lower', 'title', 'trim', 'capitalize', 'e', 'tojson', 'reverse', 'string', 'indent(2)', 'center(9)', 'urlencode', 'striptags', 'safe'])}",
            lambda: f"({self.string(depth - 1)}).{self.pick(['upper', 'strip', 'lower', 'title', 'lstrip', 'rstrip', 'swapcase', 'capitalize', 'casefold'])}()",
            lambda: f"({self.string(depth - 1)}).replace({self.string(0)}, {self.string(0)})",
            lambda: f"({self.string(depth - 1)})|replace({self.string(0)}, {self.string(0)})",
            lambda: f"({self.string(depth - 1)})[{self.pick(['1:', ':3', '::-1', '::2', '-4:', '1:5', '0', '-1', '5:1:-2'])}]",
            lambda: f"{self.list(depth - 1)}|join({self.string(0)})",
            lambda: f"{self.any(depth - 1)}|{self.pick(ANY_TO_STRING)}",
            lambda: f"({self.string(depth - 1)}).join({self.strings()})",
            lambda: f"'%s|%s' % ({self.any(depth - 1)}, {self.any(depth - 1)})",
            lambda: f"'{{}}-{{:>6}}'.format({self.any(depth - 1)}, {self.string(depth - 1)})",
            lambda: f"'{{:.2f}} {{:05}} {{:+}}'.format({self.number(depth - 1)}, {self.number(depth - 1)}, {self.number(0)})",
            lambda: f"({self.string(depth - 1)} if {self.boolean(depth - 1)} else {self.string(depth - 1)})",
            lambda: f"({self.string(depth - 1)})|truncate({self.pick(TRUNCATE_ARGUMENTS)})",
            lambda: f"({self.string(depth - 1)}).{self.pick(PADDINGS)}",
        ])()

    def strings(self):
        return self.pick(["ys", "['x', 'y']", "s.split()", "csv.split(',')", "multi.splitlines()", "users|map(attribute='name')|list", "d|list", "messages|map(attribute='role')|list"])

    def list(self, depth):
        if depth <= 0 or self.rng.random() < 0.3:
            return self.pick(["xs", "ys", "numbers", "mixed", "pairs", "empty", "[1, 'a']", "users", "range(5)", self.strings()])
        return self.pick([
            lambda: f"[{self.any(depth - 1)}, {self.any(depth - 1)}]",
            lambda: f"({self.any(depth - 1)}, {self.any(depth - 1)})",
            lambda: f"({self.list(depth - 1)})[{self.pick(['1:', ':2', '::-1', '::2', '-2:'])}]",
            lambda: f"{self.strings()}|{self.pick(STRING_LIST_FILTERS)}",
            lambda: f"numbers|{self.pick(NUMBER_LIST_FILTERS)}",
            lambda: f"{self.list(depth - 1)}|list",
            lambda: f"({self.string(depth - 1)}).split({self.pick(SPLIT_ARGUMENTS)})",
            lambda: f"{self.list(depth - 1)} + {self.list(depth - 1)}",
            lambda: f"users|{self.pick(USER_FILTERS)}",
            lambda: f"d|{self.pick(DICT_LISTS)}" if self.rng.random() < 0.5 else "d.values()|list",
        ])()

    def boolean(self, depth):
        if depth <= 0:
            return self.pick(["yes", "no", "n", "empty", "missing", "nothing", "loop.first" if self.in_loop else "yes"])
        return self.pick([
            lambda: f"{self.number(depth - 1)} {self.pick(['<', '<=', '>', '==', '!='])} {self.number(depth - 1)}",
            lambda: f"{self.string(0)} in {self.string(depth - 1)}",
            lambda: f"{self.any(0)} in {self.list(depth - 1)}",
            lambda: f"{self.any(depth - 1)} is {self.pick(TESTS)}",
            lambda: f"not ({self.boolean(depth - 1)})",
            lambda: f"{self.boolean(depth - 1)} {self.pick(['and', 'or'])} {self.boolean(depth - 1)}",
            lambda: f"({self.string(depth - 1)}).{self.pick(['startswith', 'endswith'])}({self.string(0)})",
            lambda: f"({self.string(depth - 1)}).{self.pick(['isupper', 'islower', 'isdigit', 'isalpha', 'isspace', 'istitle', 'isalnum'])}()",
            lambda: f"{self.any(depth - 1)} == {self.any(depth - 1)}",
        ])()

    def any(self, depth):
        return self.pick([self.number, self.string, self.list, self.boolean])(depth)

    def expression(self, depth=3):
        """Mostly of fitting types, so that templates get far; sometimes of any."""
        return self.any(depth) if self.rng.random() < 0.85 else self.wild(depth)

    def wild(self, depth):
        kind = self.rng.random()
        if depth == 0 or kind < 0.12:
            return self.atom()
        if kind < 0.24:
            return self.pick(STRINGS) + "|" + self.pick(STRING_FILTERS)
        if kind < 0.30:
            return self.pick(NUMBERS) + "|" + self.pick(NUMBER_FILTERS)
        if kind < 0.42:
            return self.pick(LISTS) + "|" + self.pick(LIST_FILTERS)
        if kind < 0.48:
            return self.pick(DICTS) + "|" + self.pick(DICT_FILTERS)
        if kind < 0.56:
            return self.pick(STRINGS) + "." + self.pick(METHODS)
        if kind < 0.60:
            return self.atom() + self.pick(SUBSCRIPTS)
        if kind < 0.74:
            return f"{self.wild(depth - 1)} {self.pick(BINARY)} {self.wild(depth - 1)}"
        if kind < 0.79:
            return f"({self.wild(depth - 1)})"
        if kind < 0.84:
            return f"({self.wild(depth - 1)})|" + self.pick(self.pick([STRING_FILTERS, NUMBER_FILTERS, LIST_FILTERS, DICT_FILTERS]))
        if kind < 0.88:
            return f"{self.wild(depth - 1)} is {self.pick(TESTS)}"
        if kind < 0.91:
            tail = f" else {self.wild(depth - 1)}" if self.rng.random() < 0.8 else ""
            return f"{self.wild(depth - 1)} if {self.wild(depth - 1)}{tail}"
        if kind < 0.93:
            return f"[{self.wild(depth - 1)}, {self.wild(depth - 1)}]"
        if kind < 0.95:
            return "{'k': " + self.wild(depth - 1) + ", " + self.literal() + ": " + self.atom() + "}"
        if kind < 0.97:
            return f"not {self.wild(depth - 1)}"
        if kind < 0.98 and self.macros:
            return f"{self.pick(self.macros)}({self.wild(depth - 1)})"
        return f"-{self.atom()}"

    def open(self):
        return "{%" + self.pick(["", "", "", "-", "-", "+"]) + " "

    def close(self):
        return " " + self.pick(["", "", "", "-", "-", "+"]) + "%}"

    def tag(self, text):
        return self.open() + text + self.close()

    def output(self):
        return "{{" + self.pick(["", "", "-"]) + " " + self.expression() + " " + self.pick(["", "", "-"]) + "}}"

    def body(self, depth):
        return "".join(self.statement(depth) for _ in range(self.rng.randint(1, 3)))

    def loop(self, depth):
        target = self.pick(["x", "x", "m", "v", "k, v"])
        iterable = self.pick(["d.items()", "pairs", "d|items", "d|dictsort"]) if "," in target else self.pick(
            ["messages", "xs", "users", "range(3)", "s", "numbers", "empty", self.pick(LISTS), self.expression(1)])
        condition = f" if {self.expression(1)}" if self.rng.random() < 0.2 else ""
        self.in_loop += 1
        body = self.body(depth - 1)
        if self.rng.random() < 0.15:
            body += self.tag(f"if {self.expression(1)}") + self.tag(self.pick(["break", "continue"])) + self.tag("endif")
        self.in_loop -= 1
        otherwise = self.tag("else") + self.body(depth - 1) if self.rng.random() < 0.2 else ""
        return self.tag(f"for {target} in {iterable}{condition}") + body + otherwise + self.tag("endfor")

    def macro(self, depth):
        name = self.pick(["f", "g"])
        self.macros.append(name)
        signature = self.pick(["a", "a, b=2", "a=1", "a, b=a", ""])
        body = self.body(depth - 1) + self.pick(["{{ a }}", "{{ b }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller }}"])
        return self.tag(f"macro {name}({signature})") + body + self.tag("endmacro")

    def statement(self, depth):
        kind = self.rng.random()
        if depth == 0 or kind < 0.25:
            return "".join(self.pick(TEXT) for _ in range(self.rng.randint(1, 3)))
        if kind < 0.58:
            return self.output()
        if kind < 0.70:
            branches = self.tag(f"if {self.expression(2)}") + self.body(depth - 1)
            if self.rng.random() < 0.3:
                branches += self.tag(f"elif {self.expression(2)}") + self.body(depth - 1)
            if self.rng.random() < 0.4:
                branches += self.tag("else") + self.body(depth - 1)
            return branches + self.tag("endif")
        if kind < 0.82:
            return self.loop(depth)
        if kind < 0.90:
            target = self.pick(["v", "w", "x", "s", "n", "ns.a", "v, w"])
            value = "[1, 2]" if "," in target else self.expression(2)
            return self.tag(f"set {target} = {value}")
        if kind < 0.92:
            return self.tag(self.pick(["set v", "set w", "set v | upper"])) + self.body(depth - 1) + self.tag("endset")
        if kind < 0.94:
            return self.macro(depth)
        if kind < 0.95 and self.macros:
            return self.tag(self.pick(["call ", "call(q) "]) + f"{self.pick(self.macros)}(1)") + self.body(depth - 1) + self.tag("endcall")
        if kind < 0.96:
            return self.tag("filter " + self.pick(["upper", "trim", "replace('a', 'b')", "indent(2)"])) + self.body(depth - 1) + self.tag("endfilter")
        if kind < 0.97:
            return self.tag("with v = " + self.expression(1)) + self.body(depth - 1) + self.tag("endwith")
        if kind < 0.98:
            return self.tag("generation") + self.body(depth - 1) + self.tag("endgeneration")
        return self.pick(["{# note #}", "  {#- note -#}\n", "{% raw %}{{ x }}{% endraw %}", "\n  {# a #}\n"])


def templates(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        generator = Generator(rng)
        prefix = "{% set ns = namespace(a=1) %}" if rng.random() < 0.7 else ""
        yield prefix + "".join(generator.statement(3) for _ in range(rng.randint(1, 5)))

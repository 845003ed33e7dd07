"""Golden vectors for the chat-template interpreter, by jinja2 as transformers sets it up.

    python -m espalier_tools.golden.jinja                   writes tests/golden/jinja/*.json
    python -m espalier_tools.golden.jinja compare BINARY [COUNT] [SEED]
                                                            compares COUNT random templates with BINARY
                                                            (tests/text/jinja_compare.cc)

Each case has a template, the messages and options it is rendered with, and the expected text, or
"error": true where jinja2 refuses. Dates are those of 2024-03-07 12:34:56 UTC.
"""

import datetime
import json
import logging
import os
import pathlib
import subprocess
import sys

os.environ["TZ"] = "UTC"
logging.disable(logging.WARNING)

from transformers.utils import chat_template_utils  # noqa: E402

from espalier_tools.golden import jinja_families, jinja_random, jinja_snippets  # noqa: E402

NOW = 1709814896
OUT = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden" / "jinja"


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW)


chat_template_utils.datetime = FixedClock


def render(case):
    """The case with jinja2's answer."""
    try:
        rendered, _ = chat_template_utils.render_jinja_template(
            [case["messages"]], tools=case.get("tools"), chat_template=case["template"],
            add_generation_prompt=case.get("add_generation_prompt", False),
            bos_token=case.get("bos_token", "<s>"), eos_token=case.get("eos_token", "</s>"),
            **case.get("variables", {}))
        rendered[0].encode()
        return {**case, "expected": rendered[0]}
    except Exception:  # whatever jinja2, Python or the template raised
        return {**case, "error": True}


def prints_address(case):
    """"<generator object do_map at 0x7f...>" differs from run to run."""
    return " at 0x" in case.get("expected", "")


def families():
    for name, template in jinja_families.TEMPLATES.items():
        for conversation, options in jinja_families.CONVERSATIONS.items():
            yield {"name": f"{name}/{conversation}", "template": template, "add_generation_prompt": True, **options}


def snippets():
    for template in jinja_snippets.TEMPLATES:
        yield {"template": template, "messages": jinja_snippets.MESSAGES, "variables": jinja_snippets.VARIABLES}


def random_cases(count, seed):
    for template in jinja_random.templates(count, seed):
        yield {"template": template, "messages": jinja_snippets.MESSAGES, "variables": jinja_snippets.VARIABLES}


def write_shared(name, cases):
    """Templates and inputs repeat, so they are written once and referred to by index."""
    tables = {"template": [], "input": []}

    def place(table, value):
        if value not in tables[table]:
            tables[table].append(value)
        return tables[table].index(value)

    rows = []
    for case in map(render, cases):
        if prints_address(case):
            continue
        row = {"template": place("template", case.pop("template"))}
        result = {key: case.pop(key) for key in ("expected", "error") if key in case}
        case.pop("name", None)
        row["input"] = place("input", case)
        rows.append({**row, **result})
    text = json.dumps({"now": NOW, "templates": tables["template"], "inputs": tables["input"], "cases": rows},
                      ensure_ascii=False, separators=(",", ":"))
    (OUT / f"{name}.json").write_text(text + "\n")
    errors = sum("error" in row for row in rows)
    print(f"{name}: {len(rows)} cases, {errors} of them errors, {len(text)} bytes")


def compare(binary, cases, verbose=40):
    requests = [render(case) for case in cases]
    lines = "".join(
        json.dumps({"bos_token": "<s>", "eos_token": "</s>", "now": NOW,
                    **{k: v for k, v in r.items() if k not in ("expected", "error", "name")}}) + "\n"
        for r in requests)
    run = subprocess.run([binary], input=lines, capture_output=True, text=True, env={**os.environ, "TZ": "UTC"})
    answers = [json.loads(line) for line in run.stdout.split("\n")[:-1]]
    if len(answers) != len(requests):
        print(f"{binary} stopped after {len(answers)} of {len(requests)}: {run.stderr[-2000:]}")
        print(requests[len(answers)]["template"])
    same = errors = skipped = 0
    for request, answer in zip(requests, answers):
        expected = request.get("expected")
        if prints_address(request):
            skipped += 1
        elif "64 bits" in answer.get("error", "") or "not supported" in answer.get("error", ""):
            skipped += 1  # a documented limit
        elif answer.get("text") == expected:
            same += 1
            errors += expected is None
        elif verbose > 0:
            verbose -= 1
            print("---", request.get("name", ""))
            print(request["template"] if len(request["template"]) < 3000 else "")
            print("  jinja2:", repr(expected))
            print("  ours:  ", repr(answer.get("text")), answer.get("error", ""))
    print(f"{len(answers)} compared: {same} equal ({errors} of them errors), {skipped} skipped, "
          f"{len(answers) - same - skipped} different")
    return same + skipped == len(requests)


def main(arguments):
    if arguments[:1] == ["compare"]:
        binary = arguments[1]
        count = int(arguments[2]) if len(arguments) > 2 else 1000
        seed = int(arguments[3]) if len(arguments) > 3 else 1
        results = [compare(binary, list(cases)) for cases in (families(), snippets(), random_cases(count, seed))]
        return 0 if all(results) else 1
    OUT.mkdir(parents=True, exist_ok=True)
    write_shared("families", families())
    write_shared("snippets", snippets())
    write_shared("random", random_cases(400, 20240307))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

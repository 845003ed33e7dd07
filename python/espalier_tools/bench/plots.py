"""Draws docs/performance from the ledger: tables in results.md and one SVG for each thing worth seeing.

The newest results count (merged() says of what). Everything here is made anew each time, so a result that is
doubted is corrected by measuring it again and never by hand.
"""

import re

from espalier_tools.bench import ledger, svg

FOLDER = ledger.ROOT / "docs" / "performance"
HEAD = """# Results

Made from `bench/ledger.jsonl` by `./dev bench plots`; how to read it: [performance.md](../performance.md).
"""


def slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def machine_of(entry: dict) -> str:
    """Virtual machines hide the name of the processor, not its family."""
    machine = entry["machine"]
    numbers = [f"{field} {machine[key]}" for field, key in (("family", "CPU family"), ("model", "Model")) if key in machine]
    return " ".join([machine.get("Model name", "unknown machine"), *numbers])


def commit_of(entry: dict) -> str:
    return entry["commit"][:10] + (" with local changes" if entry["dirty"] else "")


# What makes two rows the same measurement, of benchmarks that may be run part by part.
CELLS = {"limits": ["kernel", "encoding", "planes", "rows"], "model": ["work"]}


def merged(entries: list[dict]) -> list[dict]:
    """One entry for each benchmark, machine and model: the newest row of each cell; of peers the newest run, because the
    rows of a run belong together."""
    chosen: dict[tuple, dict] = {}
    for entry in entries:
        key = entry["benchmark"], machine_of(entry), (entry["model"] or {}).get("file")
        entry = entry | {"rows": [row | {"commit": commit_of(entry)} for row in entry["rows"]]}
        if key in chosen and entry["benchmark"] in CELLS:
            names = CELLS[entry["benchmark"]]
            cells = {tuple(row[name] for name in names): row for row in [*chosen[key]["rows"], *entry["rows"]]}
            entry = entry | {"rows": list(cells.values()), "command": [entry["benchmark"], "..."]}
        chosen[key] = entry
    return list(chosen.values())


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def number(value, digits: int = 1) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def origin(entry: dict) -> str:
    machine = entry["machine"]
    what = f"{machine_of(entry)}, {machine.get('CPU(s)', '?')} CPUs"
    commits = list(dict.fromkeys(row["commit"] for row in entry["rows"]))
    state = f"commit {commits[0]}" if len(commits) == 1 else f"in parts, of commits {', '.join(commits)}"
    return f"`./dev bench {' '.join(entry['command'])}`, {what}, {entry['time'][:10]}, {state}, {entry['compiler']}.\n"


def limits_section(entry: dict) -> str:
    sections = []
    places = sorted({row["rows"] for row in entry["rows"]})
    for kernel in dict.fromkeys(row["kernel"] for row in entry["rows"]):
        cells = {}
        for row in entry["rows"]:
            if row["kernel"] == kernel:
                planes = f", {row['planes']} planes" if row["planes"] == 2 else ", 1 plane" if row["planes"] else ""
                cells.setdefault(row["encoding"] + planes, {})[row["rows"]] = row["fraction"]
        series = {name: [values.get(rows) for rows in places] for name, values in cells.items()}
        name = f"limits-{slug(machine_of(entry))}-{slug(kernel)}.svg"
        title = f"{kernel}: fraction of the floor by rows"
        (FOLDER / name).write_text(svg.line_chart(title, [str(p) for p in places], series, 1.0, 0.2))
        rows = [[name, *(number(value, 2) for value in values)] for name, values in series.items()]
        sections.append(f"### {kernel}\n\n![{title}]({name})\n\n" + table(["rows", *map(str, places)], rows))
    return "\n".join(sections)


def model_section(entry: dict) -> str:
    rows = [row for row in entry["rows"] if "/1" not in row["work"]]
    lines = []
    for row in rows:
        fraction = "-" if row["fraction"] is None else f"{row['fraction'] * 100:.0f} %"
        lines.append([row["work"], number(row["value"]), row["unit"], number(row["floor"]), fraction])
    return table(["work", "value", "unit", "limit", "of the limit"], lines)


def peers_section(entry: dict) -> str:
    rows = entry["rows"]
    lines = [[row["work"], row["engine"], number(row["value"]), row.get("flags", ""), ratio_text(row)] for row in rows]
    pictures = []
    for ours in dict.fromkeys(row["against"] for row in rows if row["ratio"] is not None):
        compared = [row for row in rows if row.get("against") == ours]
        compared.sort(key=lambda row: row["work"])
        bars = [svg.Bar(f"{r['work']}, {r['engine']}", r["ratio"], r["ratio_low"], r["ratio_high"]) for r in compared]
        name = f"peers-{slug(machine_of(entry))}-{slug(rows[0]['model'])}-{slug(ours)}.svg"
        title = f"{ours}: how many times as fast as each peer, {rows[0]['model']}"
        (FOLDER / name).write_text(svg.bar_chart(title, bars, 1.0))
        pictures.append(f"![{title}]({name})\n")
    columns = ["work", "engine", "tokens/s", "flags", "ours over it (95 % interval)"]
    return "\n".join(pictures) + "\n" + table(columns, lines)


def ratio_text(row: dict) -> str:
    if row["ratio"] is None:
        return ""
    return f"{row['ratio']:.2f} ({row['ratio_low']:.2f} - {row['ratio_high']:.2f}), {row['against']}"


SECTIONS = {
    "limits": ("Kernels", limits_section),
    "model": ("Whole models", model_section),
    "peers": ("Beside other engines", peers_section),
}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    chosen = merged(list(ledger.entries()))
    parts = [HEAD]
    for benchmark, (title, section) in SECTIONS.items():
        for entry in (entry for entry in chosen if entry["benchmark"] == benchmark):
            model = f", {entry['model']['file']}" if entry["model"] else ""
            parts += [f"## {title}{model}, {machine_of(entry)}\n", origin(entry), section(entry)]
    (FOLDER / "results.md").write_text("\n".join(parts))

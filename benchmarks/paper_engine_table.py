"""The table of the paper's engine beside the published code, from the recorded lines.

    python benchmarks/paper_engine_table.py

Reads `parity.jsonl`, `cpu_step.jsonl` and `device.json` in `benchmarks/results/`; writes
`paper_engine.md` there.
"""

import collections
import json
import statistics
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
COLUMNS = ("shd", "f1", "nll", "edges")


def main() -> None:
    text = ["# The paper's engine beside the published code", ""]
    text += [*parity(), "", *steps(), "", *device(), ""]
    (RESULTS / "paper_engine.md").write_text("\n".join(text))


def read(name: str) -> tuple[dict, list[dict]]:
    """What was run where, and its lines."""
    first, *rows = (json.loads(line) for line in (RESULTS / name).read_text().splitlines())
    return first["about"], rows


def parity() -> list[str]:
    """Means over seeds ± their standard deviation, by data set, evaluation, epoch and code."""
    about, rows = read("parity.jsonl")
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["data"], row["moves"], row["epoch"], row["code"]].append(row)
    table = [
        "## Quality at equal epochs",
        "",
        f"{about['device']}. {about['evaluation'].capitalize()}. Commit {about['commit'][:10]}; "
        f"{about['later']}.",
        "",
        "| data | moves | epoch | code | seeds | E-SHD | F1 | held-out NLL | edges |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for about_row, found in sorted(
        groups.items(), key=lambda item: (item[0][0], str(item[0][1]), *item[0][2:])
    ):
        cells = [spread([row[name] for row in found]) for name in COLUMNS]
        heads = " | ".join(map(str, about_row))
        table.append(f"| {heads} | {len(found)} | {' | '.join(cells)} |")
    return table


def spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.2f} ± {statistics.pstdev(values):.2f}"


def steps() -> list[str]:
    """CPU seconds of a step, and how many times less than the published code."""
    about, rows = read("cpu_step.jsonl")
    published = {(r["machine"], r["d"]): r["step"] for r in rows if r.get("code") == "published"}
    table = [
        "## CPU time of a step (10 chains, a batch of 512, one thread)",
        "",
        f"{about['device']}. Commit {about['commit'][:10]}.",
        "",
        "| variables | passes | ours, s | published, s | times less |",
        "|---|---|---|---|---|",
    ]
    for row in sorted((r for r in rows if "passes" in r), key=lambda r: (r["d"], -r["passes"])):
        theirs = published.get((row["machine"], row["d"]))
        if theirs is not None:
            ratio = theirs / row["step"]
            table.append(
                f"| {row['d']} | {row['passes']} | {row['step']} | {theirs} | {ratio:.1f} |"
            )
    return table


def device() -> list[str]:
    """Whole runs on a GPU, compile included."""
    found = json.loads((RESULTS / "device.json").read_text())
    about, rows = found["about"], found["rows"]
    columns = [name for name in rows[0] if name not in ("steps", "true_edges")]
    heads = [name.replace("_", " ") for name in columns]
    table = [
        f"## Whole runs on one {about['device']} ({rows[0]['steps']} steps, 10 chains, N=5000)",
        "",
        f"Own data, seed {about['data_seed']}; jax {about['jax']}; commit {about['commit'][:10]}. "
        f"Seconds include compilation; {about['note']}.",
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    return table + [f"| {' | '.join(str(row[name]) for name in columns)} |" for row in rows]


if __name__ == "__main__":
    main()

"""tables.py RESULTS.tsv FOLDER: tables (FOLDER/resccl.md) and charts (FOLDER/resccl_*.svg) of what evaluate printed."""

import csv
import statistics
import sys
from pathlib import Path

MIB = 1 << 20
LARGE = 256 * MIB
BUDGETS = (8, 16, 32)


class Row:
    def __init__(self, record):
        self.time = float(record["time us"])
        self.blocks = int(record["thread blocks"])
        self.busy = float(record["busy"])
        self.idle = float(record["highest idle"])
        self.bound = float(record["bound us"])
        self.how = record["how"]


def read(path):
    rows = {}
    with open(path, newline="") as file:
        for record in csv.DictReader(file, delimiter="\t"):
            key = record["machine"], record["case"], int(record["bytes"]), record["policy"]
            rows[key] = Row(record)
    return rows


def size_name(size):
    return "1 GiB" if size == 1 << 30 else f"{size // MIB} MiB"


def table(head, lines):
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return out + ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines] + [""]


def percent(share):
    return f"{100 * share:.0f} %"


def gap_closed(hpds, best):
    """Of what HPDS is above the bound; None where that is less than a twentieth of the bound."""
    if hpds.time < 1.05 * best.bound:
        return None
    return (hpds.time - best.time) / (hpds.time - best.bound)


def smallest_as_fast(rows, machine, case, other):
    """Of the plans of schedule best that are no slower than `other`, one with fewest thread blocks; else `other`."""
    fit = [other]
    for policy in ["best"] + [f"best@{n}" for n in BUDGETS]:
        row = rows.get((machine, case, LARGE, policy))
        if row is not None and row.time <= other.time * 1.001:
            fit.append(row)
    return min(fit, key=lambda row: (row.blocks, row.time))


def large_table(rows, machine, cases):
    lines = []
    for case in cases:
        at = {p: rows.get((machine, case, LARGE, p)) for p in ("msccl", "strong", "rr", "hpds", "best")}
        if any(row is None for row in at.values()):
            continue
        base, best = at["msccl"], at["best"]
        closed = gap_closed(at["hpds"], best)
        lines.append(
            [case, f"{base.time:.0f}"]
            + [f"{base.time / at[p].time:.2f}" for p in ("strong", "rr", "hpds", "best")]
            + [f"{best.time / best.bound:.2f}", "at the bound" if closed is None else percent(closed)]
            + [at[p].blocks for p in ("msccl", "strong", "rr", "hpds", "best")]
            + [percent(at[p].busy) for p in ("msccl", "strong", "best")]
            + [percent(at[p].idle) for p in ("msccl", "strong", "hpds", "best")]
        )
    head = ["case", "MSCCL us", "strong x", "round-robin x", "HPDS x", "best x", "best / bound", "gap closed"]
    head += ["blocks: MSCCL", "strong", "rr", "HPDS", "best", "busy: MSCCL", "strong", "best"]
    head += ["highest idle: MSCCL", "strong", "HPDS", "best"]
    return table(head, lines)


def size_table(rows, machines, cases, sizes):
    lines = []
    for machine in machines:
        for case in cases:
            cells = []
            for size in sizes:
                best = rows.get((machine, case, size, "best"))
                base, strong = (rows.get((machine, case, size, p)) for p in ("msccl", "strong"))
                if best is None or base is None or strong is None:
                    break
                cells.append(f"{base.time / best.time:.2f} / {strong.time / best.time:.2f}")
            if cells:
                lines.append([machine, case] + cells)
    return table(["machine", "case"] + [size_name(s) for s in sizes], lines)


def budget_table(rows, machines, cases):
    lines = []
    for machine in machines:
        for case in cases:
            cells = []
            for n in BUDGETS:
                at = [rows.get((machine, case, LARGE, f"{p}@{n}")) for p in ("msccl", "strong", "hpds", "best")]
                if at[3] is None:
                    break
                others = [f"{row.time / at[3].time:.2f}" if row is not None else "none" for row in at[:3]]
                cells.append(f"{' / '.join(others)} ({at[3].blocks})")
            if cells:
                lines.append([machine, case] + cells)
    return table(["machine", "case"] + [f"{n} blocks" for n in BUDGETS], lines)


def saving_table(rows, machines, cases):
    lines = []
    for machine in machines:
        for case in cases:
            base, strong = (rows.get((machine, case, LARGE, p)) for p in ("msccl", "strong"))
            if base is None or strong is None:
                continue
            cells = []
            for row in (base, strong):
                few = smallest_as_fast(rows, machine, case, row)
                cells += [row.blocks, few.blocks, percent(1 - few.blocks / row.blocks), percent(few.idle)]
            lines.append([machine, case] + cells)
    head = ["machine", "case", "MSCCL", "best as fast", "fewer", "its highest idle"]
    head += ["strong", "best as fast", "fewer", "its highest idle"]
    return table(head, lines)


def summary(rows, machines, cases, sizes):
    speed, strong_speed, closed, idle, fewer, fewer_strong = [], [], [], [], [], []
    for machine in machines:
        for case in cases:
            for size in sizes:
                best, base, strong, hpds = (
                    rows.get((machine, case, size, p)) for p in ("best", "msccl", "strong", "hpds")
                )
                if None in (best, base, strong, hpds):
                    continue
                where = f"{case}, {machine}, {size_name(size)}"
                speed.append((base.time / best.time, where))
                strong_speed.append((strong.time / best.time, where))
                if size == LARGE:
                    share = gap_closed(hpds, best)
                    if share is not None:
                        closed.append((share, where))
                    idle.append((smallest_as_fast(rows, machine, case, base).idle, where))
                    for row, to in ((base, fewer), (strong, fewer_strong)):
                        to.append((1 - smallest_as_fast(rows, machine, case, row).blocks / row.blocks, where))
    lines = [
        ["speed over MSCCL", *(f"{pick(speed)[0]:.2f} ({pick(speed)[1]})" for pick in (min, max)),
         f"{statistics.geometric_mean(s for s, _ in speed):.2f} mean"],
        ["speed over the strongest connection plan",
         *(f"{pick(strong_speed)[0]:.2f} ({pick(strong_speed)[1]})" for pick in (min, max)),
         f"{statistics.geometric_mean(s for s, _ in strong_speed):.2f} mean"],
        ["gap from HPDS to the bound closed, 256 MiB",
         *(f"{percent(pick(closed)[0])} ({pick(closed)[1]})" for pick in (min, max)),
         f"{sum(s >= 0.5 for s, _ in closed)} of {len(closed)} at least half"],
        ["fewer thread blocks than MSCCL at its speed, 256 MiB",
         *(f"{percent(pick(fewer)[0])} ({pick(fewer)[1]})" for pick in (min, max)),
         f"{percent(statistics.median(s for s, _ in fewer))} median"],
        ["fewer than the strongest at its speed, 256 MiB",
         *(f"{percent(pick(fewer_strong)[0])} ({pick(fewer_strong)[1]})" for pick in (min, max)),
         f"{percent(statistics.median(s for s, _ in fewer_strong))} median"],
        ["highest idle share of the smallest plan as fast as MSCCL, 256 MiB",
         *(f"{percent(pick(idle)[0])} ({pick(idle)[1]})" for pick in (min, max)),
         f"{sum(s <= 0.225 for s, _ in idle)} of {len(idle)} at most 22.5 %"],
    ]
    return table(["", "least", "most", ""], lines)


def bars(rows, machine, cases, path):
    """Speed over MSCCL at 256 MiB, a group of bars for each case."""
    policies = (("strong", "#9aa5b1"), ("rr", "#d9a441"), ("hpds", "#4f8a8b"), ("best", "#1f4e79"))
    shown = [c for c in cases if (machine, c, LARGE, "best") in rows]
    left, top, row_height, bar, width = 190, 46, 62, 12, 560
    def value(case, policy):
        row = rows.get((machine, case, LARGE, policy))
        return rows[(machine, case, LARGE, "msccl")].time / row.time if row is not None else 0

    most = max(2.0, max(value(c, p) for c in shown for p, _ in policies) * 1.05)
    def x(v):
        return left + v / most * width

    height = top + row_height * len(shown) + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{height}" '
           f'font-family="sans-serif" font-size="12">',
           f'<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="18" font-size="14">Speed over MSCCL at 256 MiB, {machine}</text>']
    for i, (policy, colour) in enumerate(policies):
        out.append(f'<rect x="{left + 110 * i}" y="27" width="10" height="10" fill="{colour}"/>')
        out.append(f'<text x="{left + 110 * i + 15}" y="36">{policy}</text>')
    for k, case in enumerate(shown):
        y = top + row_height * k
        out.append(f'<text x="{left - 8}" y="{y + 30}" text-anchor="end">{case}</text>')
        for i, (policy, colour) in enumerate(policies):
            v = value(case, policy)
            if v == 0:
                continue
            out.append(f'<rect x="{left}" y="{y + 4 + i * bar}" width="{x(v) - left:.1f}" height="{bar - 2}" fill="{colour}"/>')
            out.append(f'<text x="{x(v) + 4:.1f}" y="{y + 13 + i * bar}" font-size="10">{v:.2f}</text>')
    out.append(f'<line x1="{x(1):.1f}" y1="{top}" x2="{x(1):.1f}" y2="{height - 30}" stroke="#444" stroke-dasharray="3 3"/>')
    out.append(f'<text x="{x(1):.1f}" y="{height - 14}" text-anchor="middle">MSCCL</text>')
    out.append("</svg>")
    Path(path).write_text("\n".join(out) + "\n")


def main():
    rows, folder = read(sys.argv[1]), Path(sys.argv[2])
    machines = list(dict.fromkeys(key[0] for key in rows))
    cases = list(dict.fromkeys(key[1] for key in rows))
    sizes = sorted({key[2] for key in rows})
    text = ["<!-- made by bench/resccl/tables.py -->", "# Tables: policy state against policy connection", ""]
    text += ["`bench/resccl/run.sh` makes this page; [resccl.md](resccl.md) says what it means.", ""]
    text += ["## Summary", ""] + summary(rows, machines, cases, sizes)
    for machine in machines:
        name = machine.replace(":", "_").replace(",", "_").replace("=", "")
        bars(rows, machine, cases, folder / f"resccl_{name}.svg")
        text += [f"## {machine}, 256 MiB", "", f"![speed over MSCCL](resccl_{name}.svg)", ""]
        text += large_table(rows, machine, cases)
    text += ["## Speed of best over sizes: over MSCCL / over the strongest connection plan", ""]
    text += size_table(rows, machines, cases, sizes)
    text += ["## Thread blocks at equal speed, 256 MiB", ""] + saving_table(rows, machines, cases)
    text += ["## Under a bound on thread blocks, 256 MiB", ""]
    text += ["Speed of best over MSCCL / strongest / HPDS within the same bound, and the blocks that best uses.", ""]
    text += budget_table(rows, machines, cases)
    (folder / "resccl_tables.md").write_text("\n".join(text))


main()

#!/usr/bin/env python3
"""Prints the share of executed lines for each folder of the library.

    coverage_table.py SUMMARY [PAGE]

SUMMARY is the output of "llvm-cov export --summary-only". With PAGE, the table also replaces the lines between
"<!-- measured: coverage -->" and "<!-- end -->" of that page.
"""
import collections
import json
import pathlib
import sys


def folder_of(path: pathlib.Path) -> str:
    parts = path.parts
    if parts[0] == "include":
        return "include/colock"
    return "/".join(parts[: 2 if len(parts) == 3 else 3])


def table_of(summary: dict) -> str:
    lines = collections.defaultdict(lambda: [0, 0])
    for file in summary["data"][0]["files"]:
        # The build removes the folder of the checkout from the names. In a unity build, names may begin with the build
        # folder instead.
        path = pathlib.Path(file["filename"].removeprefix("build/coverage/"))
        if path.parts[0] not in ("include", "src"):
            continue
        counts = file["summary"]["lines"]
        for name in (folder_of(path), "all"):
            lines[name][0] += counts["covered"]
            lines[name][1] += counts["count"]
    rows = ["| folder | lines | executed |", "|---|---:|---:|"]
    for name in sorted(lines, key=lambda name: (name == "all", name)):
        covered, count = lines[name]
        rows.append(f"| {name} | {count} | {100 * covered / count:.1f} % |")
    return "\n".join(rows) + "\n"


def main() -> None:
    summary, *pages = sys.argv[1:]
    table = table_of(json.loads(pathlib.Path(summary).read_text()))
    print(table, end="")
    for page in map(pathlib.Path, pages):
        before, begin, rest = page.read_text().partition("<!-- measured: coverage -->\n")
        _, end, after = rest.partition("<!-- end -->\n")
        if not (begin and end):
            sys.exit(f"coverage_table: error: {page} has no lines <!-- measured: coverage --> and <!-- end -->")
        page.write_text(f"{before}{begin}\n{table}\n{end}{after}")


if __name__ == "__main__":
    main()

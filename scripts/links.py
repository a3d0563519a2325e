#!/usr/bin/env python3
"""Checks the links of all Markdown pages: each file exists, and each anchor is a heading of its page. Addresses of other
sites are not checked.

    scripts/links.py
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent


def lines_without_code(page: pathlib.Path) -> list[str]:
    lines = []
    inside = False
    for line in page.read_text().splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
            line = ""
        lines.append("" if inside else re.sub(r"`[^`]*`", lambda code: code[0].replace("[", " ").replace("]", " "), line))
    return lines


def anchors(page: pathlib.Path) -> set[str]:
    """The anchors that GitHub gives to the headings."""
    found: set[str] = set()
    for line in lines_without_code(page):
        heading = re.match(r"#+ +(.*)", line)
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = 0
        while (anchor := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(anchor)
    return found


def main() -> None:
    failures = []
    checked = 0
    for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob(".github/**/*.md")]):
        # A link may be split between two lines.
        text = "\n".join(lines_without_code(page))
        for match in re.finditer(r"\]\(\s*([^)\s]+)[^)]*\)", text):
            target = match[1]
            if re.match(r"[a-z]+:", target):
                continue
            checked += 1
            number = text.count("\n", 0, match.start()) + 1
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists():
                failures.append(f"{page.relative_to(root)}:{number}: no file {target}")
            elif anchor and anchor not in anchors(file):
                failures.append(f"{page.relative_to(root)}:{number}: no heading for {target}")
    if failures or not checked:
        sys.exit("\n".join(f"links: error: {failure}" for failure in failures) or "links: error: no links")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks that docs/troubleshooting.md quotes only messages that exist: each text at the beginning of a row is a part of
a string, or an enumerator, in the sources.

    scripts/error_texts.py
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent


def main() -> None:
    sources = "".join(
        path.read_text()
        for folder in ("src", "include", "cmake")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    )
    # The compiler joins adjacent literals.
    sources = re.sub(r'"\s*\n\s*"', "", sources)
    page = root / "docs" / "troubleshooting.md"
    missing = []
    quoted = 0
    for line in page.read_text().splitlines():
        first_cell = re.match(r"\| (`.*?) \|", line)
        for text in re.findall(r"`([^`]+)`", first_cell[1]) if first_cell else []:
            quoted += 1
            enumerator = text.removeprefix("lost_reason::")
            if enumerator not in sources:
                missing.append(text)
    if missing or not quoted:
        sys.exit("\n".join(f"error_texts: error: {page.name} quotes a text that no source has: {text}" for text in missing))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Counts declarations in src/ and include/ whose name is a word of grammar, such as `of`, `why` or `wanted`.

    scripts/names.py [--list] [FOLDER]...

Prints for each folder how many there are per 1,000 lines of code, and fails if there are more than 3 per 1,000 lines in
all folders together. With --list, prints each of these declarations. Strings and comments do not count.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

MAX_PER_1000_LINES = 3
WORDS = "of by with on how who when where why what wanted asked chosen got made given ended ending sent".split()
DECLARATION = re.compile(
    r"(?<![\w:.>])(?P<type>(?:const\s+)?[\w:]+(?:<[^;(){}]*>)?)(?:\s*const)?(?:\s*[&*]{1,2}\s*|\s+)"
    r"\b(?P<name>" + "|".join(WORDS) + r")_?\b\s*(?=[,)=;{])"
)
# Words that stand before an expression, not types.
KEYWORDS = {"return", "else", "new", "throw", "co_return", "co_await", "case", "using"}


RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)


def without_raw_strings(text):
    """Replaces each raw string by as many line breaks as it contains."""
    return RAW_STRING.sub(lambda match: "\n" * match.group().count("\n"), text)


def declarations(line):
    """Returns the matches of a line of code, without those inside strings."""
    code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split("//")[0]
    return [match for match in DECLARATION.finditer(code) if match["type"] not in KEYWORDS]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print each declaration")
    parser.add_argument("folder", nargs="*", default=["src", "include"])
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    paths = subprocess.run(
        ["git", "ls-files", "-z", *options.folder], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    names, lines = collections.Counter(), collections.Counter()
    for path in paths:
        if not path.endswith((".cpp", ".hpp")):
            continue
        folder = "/".join(path.split("/")[:2])
        for number, line in enumerate(without_raw_strings((root / path).read_text(encoding="utf-8")).splitlines(), 1):
            text = line.strip()
            if not text or text.startswith("//"):
                continue
            lines[folder] += 1
            found = declarations(text)
            names[folder] += len(found)
            if found and options.list:
                print(f"{path}:{number}: {text}")
    for folder in [*sorted(lines), "all"]:
        name_count = names.total() if folder == "all" else names[folder]
        line_count = lines.total() if folder == "all" else lines[folder]
        print(f"{folder:24}{name_count:5} of {line_count:6} lines {1000 * name_count / max(line_count, 1):5.1f} per 1,000")
    if 1000 * names.total() > MAX_PER_1000_LINES * lines.total():
        sys.exit("names: error: use nouns, verbs and adjectives as names; --list shows the declarations")


if __name__ == "__main__":
    main()

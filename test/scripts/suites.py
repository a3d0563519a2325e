#!/usr/bin/env python3
"""Checks the table "Suites" of CONTRIBUTING.md, which scripts/test.sh --for reads: its folders exist, each folder of src/
is in it, and each suite has tests.

    test/scripts/suites.py BUILD_FOLDER CTEST
"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent.parent


def main() -> None:
    build, ctest = sys.argv[1:]
    section = re.search(r"^## Suites\n(.*?)(?=^## |\Z)", (root / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
    rows = [[re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:4]]
            for line in section[1].splitlines() if line.count("|") == 4 and line.startswith("| `")]
    folders = {folder for row in rows for folder in row[0]}
    listed = subprocess.run([ctest, "--show-only"], cwd=build, check=True, capture_output=True, text=True).stdout
    tests = re.findall(r"^\s*Test\s+#\d+: (\S+)", listed, re.MULTILINE)

    failures = [f"there is no folder {folder}" for folder in sorted(folders) if not (root / folder).is_dir()]
    failures += [f"the table has no row for src/{folder.name}" for folder in sorted((root / "src").iterdir())
                 if folder.is_dir() and f"src/{folder.name}" not in folders]
    failures += [f"no test begins with {suite}" for row in rows for suite in row[1]
                 if not any(test.startswith(suite if "." in suite else f"{suite}.") for test in tests)]
    if failures or not rows:
        sys.exit("\n".join(f"suites: error: {failure}" for failure in failures or ["the table was not found"]))


if __name__ == "__main__":
    main()

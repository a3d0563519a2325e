#!/usr/bin/env python3
"""Compares the texts of `colock --help`, of the manual page, of docs/command.md and of the completion for bash.

    help.py COLOCK MANUAL_PAGE CHECKOUT
"""
import pathlib
import re
import subprocess
import sys

MAX_WIDTH = 80


def words(text: str) -> str:
    return " ".join(text.split())


def plain(page: str) -> str:
    """Returns the text of the manual page without the requests of troff."""
    page = re.sub(r"^\.(SH|SS|TP|PP|B|I|br|TH) ?", "", page, flags=re.MULTILINE)
    return words(page.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\"))


def table(text: str, heading: str) -> list[str]:
    section = re.search(rf"^{heading}:\n(.*?)\n\n", text, re.MULTILINE | re.DOTALL)[1]
    return [re.sub(r"\s{2,}", " | ", line.strip()) for line in section.splitlines()]


def completions(colock: str, script: pathlib.Path, *line: str) -> list[str]:
    program = """source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _colock "$1"; printf '%s\n' "${COMPREPLY[@]}" """
    return subprocess.run(["bash", "-c", program, "bash", script, colock, *line], check=True, capture_output=True,
                          text=True).stdout.split()


def main() -> None:
    colock, page_file, checkout = sys.argv[1:]

    def output(*arguments: str) -> str:
        return subprocess.run([colock, *arguments], check=True, capture_output=True, text=True).stdout

    page = plain(pathlib.Path(page_file).read_text())
    manual = (pathlib.Path(checkout) / "docs/command.md").read_text()
    script = pathlib.Path(checkout) / "src/command/completion.bash"
    failures = []

    def check(condition: bool, text: str) -> None:
        if not condition:
            failures.append(text)

    main_help = output("--help")
    subcommands = [each.split(" | ")[0] for each in table(main_help, "Subcommands")]
    check("run" in subcommands and "ls" in subcommands, "subcommands are missing")
    helps = {each: output(each, "--help") for each in subcommands}
    for name, text in {"": main_help, **helps}.items():
        for line in text.splitlines():
            check(len(line) <= MAX_WIDTH, f"'colock {name} --help' has a line of {len(line)} characters: {line}")
    for name, text in helps.items():
        description, options = text.split("\n\nOptions:\n")
        for paragraph in description.split("\n\n")[1:]:
            check(words(paragraph) in page, f"the manual page lacks a paragraph of {name}: {paragraph}")
        for option in re.findall(r"--[a-z-]+", options):
            check(option in page, f"the manual page lacks {option} of {name}")
            check(f"`{option}" in manual or option in manual, f"docs/command.md lacks {option} of {name}")
            check(option in completions(colock, script, name, option), f"no completion of {option} of {name}")
        check(f"\n## {name}\n" in manual.lower(), f"docs/command.md has no section on {name}")
    for heading in ("Environment", "Exit codes"):
        for row in table(main_help, heading):
            check(words(row.replace(" | ", " ")) in page, f"the manual page lacks: {row}")
            term, text = row.split(" | ")
            check(re.search(rf"^\| `?{re.escape(term)}`? \| {re.escape(text)}", manual, re.MULTILINE) is not None,
                  f"docs/command.md lacks the row | {term} | {text} |")
    check(sorted(completions(colock, script, "")) == sorted([*subcommands, "--help", "--version"]), "the first word")
    check(re.fullmatch(r"colock \d+\.\d+\.\d+\n", output("--version")) is not None, "--version")
    readme = (pathlib.Path(checkout) / "README.md").read_text()
    check("colock run" in readme and readme.count("\n") <= 150, "README.md shows colock run in at most 150 lines")
    if failures:
        sys.exit("\n".join(f"help: error: {each}" for each in failures))


if __name__ == "__main__":
    main()

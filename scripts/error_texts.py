#!/usr/bin/env python3
"""Checks that docs/troubleshooting.md quotes only messages that exist: each text at the beginning of a row is a part of
a string, or an enumerator, in the sources.

    scripts/error_texts.py [--provoked]

With --provoked, prints for each row the tests that produce what the row describes. It is an error if there is none. A
text is produced by each test that has it in a string, with which it compares the message. A row whose first cell is not
the text of a message names its tests in a comment: <!-- provoked by SUITE/CASE -->, or the name of a test of ctest.
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
page = root / "docs" / "troubleshooting.md"

# A macro that begins a suite or a case. The name is its first argument, or its second one if the first is a fixture.
macros = re.compile(
    r"^(?:(?:BOOST_(?:AUTO|FIXTURE)_TEST|COLOCK_REMOTE)_(SUITE|CASE)|COLOCK_(?:CONTRACT_CASE|FIXTURE))\(\s*([^)]*)",
    re.MULTILINE)
# Adds a test, or sets the text that is expected of one. The arguments may contain pairs of brackets.
cmake_calls = re.compile(
    r"^\s*(?:add_\w*test|set_tests_properties)\((?:NAME )?([\w.]+)((?:[^()]|\([^()]*\))*)", re.MULTILINE)


def joined(text: str) -> str:
    """The compiler joins adjacent literals."""
    return re.sub(r'"\s*\n\s*"', "", text)


def rows() -> list[tuple[int, str, list[str], str]]:
    """Of each row: its line, its first cell, the texts that are quoted there, and all of the row."""
    found = []
    head = True
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if not line.startswith("|"):
            head = True
        elif head:
            head = not line.startswith("|---")
        else:
            cell = re.match(r"\| (.*?) \|", line)[1]
            found.append((number, cell, re.findall(r"`([^`]+)`", cell) if cell.startswith("`") else [], line))
    return found


def missing_in_sources() -> list[str]:
    sources = joined("".join(path.read_text() for folder in ("src", "include", "cmake")
                             for path in sorted((root / folder).rglob("*")) if path.is_file()))
    texts = [text for _, _, texts, _ in rows() for text in texts]
    return [f"{page.name} quotes a text that no source has: {text}" for text in texts
            if text.removeprefix("lost_reason::") not in sources]


def strings_of_tests() -> dict[str, str]:
    """Of each test: its strings and enumerators, one in each line. Parts of a file outside of a test have its path."""
    found: dict[str, str] = {}

    def add(test: str, text: str) -> None:
        without_comments = re.sub(r"(?m)^\s*//.*|\s// .*", "", text)
        strings = re.findall(r'"((?:[^"\\\n]|\\.)*)"|\b(lost_reason::\w+)', joined(without_comments))
        found[test] = found.get(test, "") + "\n".join(string or enumerator for string, enumerator in strings) + "\n"

    for path in sorted((root / "test").rglob("*.[ch]pp")):
        suite = case = ""
        text = path.read_text()
        end = 0
        for match in macros.finditer(text):
            add(f"{suite}/{case}" if case else str(path.relative_to(root)), text[end : match.start()])
            end = match.start()
            words = [word.strip() for word in match[2].split(",")]
            if match[1] == "SUITE":
                suite, case = words[0], ""
            elif match[1] == "CASE":
                case = words[0]
            else:
                suite, case = suite or words[0], words[1]
        add(f"{suite}/{case}" if case else str(path.relative_to(root)), text[end:])
    for path in sorted([*(root / "test").rglob("CMakeLists.txt"), *(root / "test").rglob("*.cmake")]):
        # A regular expression has brackets around characters that have a meaning.
        text = re.sub(r"\[([.+])\]", r"\1", path.read_text())
        calls = cmake_calls.findall(text)
        for name, arguments in calls:
            # add_compile_test(mistakes ...) in test/compile adds the test compile.mistakes.
            add(name if "." in name else f"{path.parent.name}.{name}", arguments)
        if not calls:
            add(str(path.relative_to(root)), text)
    # What the compiler says about a line.
    for path in sorted((root / "test" / "compile").glob("*.cpp")):
        sentences = re.findall(r"// error: (.*)", path.read_text())
        found[f"compile.{path.stem}"] = found.get(f"compile.{path.stem}", "") + "\n".join(sentences)
    return found


def without_a_test() -> list[str]:
    """Prints the tests of each row. Returns an error for each row, or text of a row, that has none."""
    strings = strings_of_tests()
    failures = []
    for number, cell, texts, row in rows():
        named = re.findall(r"<!-- provoked by (.*?) -->", row)
        tests = [test for names in named for test in names.split(", ")]
        failures += [f"{page.name}:{number}: there is no test {test}" for test in tests if test not in strings]
        for text in [] if named else texts:
            producers = [test for test, all_strings in strings.items() if text in all_strings]
            tests += producers
            if not producers:
                failures.append(f"{page.name}:{number}: no test produces: {text}")
        if not tests and not texts:
            failures.append(f"{page.name}:{number}: no test is named for: {cell}")
        print(f"{page.name}:{number}: {cell}: {', '.join(dict.fromkeys(tests))}")
    return failures


def main() -> None:
    failures = missing_in_sources()
    if "--provoked" in sys.argv[1:]:
        failures += without_a_test()
    if failures or not rows():
        sys.exit("\n".join(f"error_texts: error: {failure}" for failure in failures))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks the links of all Markdown pages: each file exists, and each anchor is a heading of its page. With the folder
of a site, checks its HTML pages instead: links, pictures, scripts and style sheets. Addresses of other sites are not
checked.

    scripts/links.py [SITE]
"""
import html.parser
import pathlib
import re
import sys
import urllib.parse

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


def check_markdown(failures: list[str]) -> int:
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
    return checked


class html_page(html.parser.HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, file: pathlib.Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[int, str]] = []
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")
            elif name in ("href", "src", "data"):
                self.links.append((self.getpos()[0], value or ""))


def check_html(site: pathlib.Path, failures: list[str]) -> int:
    pages = {file: html_page(file) for file in sorted(site.resolve().glob("**/*.html"))}
    checked = 0
    for file, page in pages.items():
        for line, link in page.links:
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc:
                continue
            checked += 1
            target = (file.parent / urllib.parse.unquote(address.path)).resolve() if address.path else file
            anchor = urllib.parse.unquote(address.fragment)
            if not target.is_file():
                failures.append(f"{file}:{line}: no file {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                failures.append(f"{file}:{line}: no anchor for {link}")
    return checked


def main() -> None:
    failures: list[str] = []
    checked = check_html(pathlib.Path(sys.argv[1]), failures) if len(sys.argv) > 1 else check_markdown(failures)
    if failures or not checked:
        sys.exit("\n".join(f"links: error: {failure}" for failure in failures) or "links: error: no links")


if __name__ == "__main__":
    main()

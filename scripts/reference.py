#!/usr/bin/env python3
"""Makes the pages of the API reference from the XML that Doxygen has written: one page for each public header, and an
index of all names by topic, with the first sentence of their comments. A public name without a comment is an error.
On the page of a header, an `async_` function is folded under its plain form.

    scripts/reference.py XML_DIRECTORY PAGE_DIRECTORY

No comment is needed for
 - a function that follows a function of the same name: the comment of the first one is for both,
 - a destructor, an assignment, a comparison, an inherited constructor, and a function that is deleted or defaulted.
"""
import fnmatch
import itertools
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

# The topics in the order of the index. A header belongs to the first topic with a pattern that matches its path. The
# names of a topic are in the order of its patterns.
topics = {
    "Locks": ["locker*", "lock.hpp", "lock_group*", "election*", "leadership*", "fence*", "token*"],
    "Options": ["options*", "retry*", "tls*"],
    "Errors": ["error*", "with_diagnostics*"],
    "Observing": ["observer*", "metrics*", "logging_observer*", "stat*", "lost_reason*"],
    "Backends": ["connect*", "memory/*", "redis/*", "zookeeper/*", "mongo/*"],
    "Writing an adapter": ["spi/adapter.hpp", "spi/awaitable_adapter*", "spi/*"],
    "Testing": ["testing/virtual_clock*", "testing/scripted_adapter*", "testing/history*"],
    "Testing an adapter": ["testing/*"],
    "Helpers": ["*"],
}

# The names that follow all others of their topic.
helpers = r"operator\b|to_string|_t\b|_category|_count$|make_error_code"


def text_of(element) -> str:
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip() if element is not None else ""


# --- comments -------------------------------------------------------------------------------------------------------


def inline(element) -> str:
    """An element inside a paragraph as reStructuredText."""
    text = escape(text_of(element))
    if element.tag == "computeroutput":
        return f"\\ ``{text_of(element)}``\\ "
    if element.tag in ("emphasis", "bold"):
        mark = "*" if element.tag == "emphasis" else "**"
        return f"\\ {mark}{text}{mark}\\ "
    if element.tag == "ulink":
        return f"\\ `{text} <{element.get('url')}>`__\\ "
    return text


def escape(text: str | None) -> str:
    return re.sub(r"([\\`*_|<>])", r"\\\1", re.sub(r"\s+", " ", text or ""))


def indented(lines: list[str], depth: int) -> list[str]:
    return [" " * depth + line if line else "" for line in lines]


def item_list(element, mark: str) -> list[str]:
    lines: list[str] = []
    for item in element.findall("listitem"):
        content = indented(comment_lines(item), len(mark) + 1)
        if not content:
            sys.exit("reference: error: an empty list item: does a line of a comment begin with a number and a dot?")
        content[0] = mark + content[0][len(mark) :]
        lines += [*content, ""]
    return lines


def parameter_list(element) -> list[str]:
    name = {"param": "param", "exception": "throws", "templateparam": "tparam"}[element.get("kind")]
    lines = []
    for item in element.findall("parameteritem"):
        body = comment_lines(item.find("parameterdescription"))
        lines += [f":{name} {text_of(item.find('parameternamelist'))}: {body[0]}", *indented(body[1:], 4)]
    return [*lines, ""]


blocks = {
    "itemizedlist": lambda element: item_list(element, "-"),
    "orderedlist": lambda element: item_list(element, "#."),
    "parameterlist": parameter_list,
    "simplesect": lambda element: comment_lines(element),
    "verbatim": lambda element: [
        ".. code-block:: cpp", "", *indented((element.text or "").strip("\n").split("\n"), 4), ""],
}


def paragraph(element) -> list[str]:
    """A paragraph, which may contain lists and other blocks."""
    lines: list[str] = []
    text = escape(element.text)
    for child in [*element, None]:
        if child is not None and child.tag not in blocks:
            text += inline(child) + escape(child.tail)
            continue
        if text := re.sub(r"^(\\ | )+|(\\ | )+$", "", text):
            lines += [text, ""]
        if child is not None:
            lines += blocks[child.tag](child)
            text = escape(child.tail)
    return lines


def comment_lines(*elements) -> list[str]:
    """The comments in the elements, as lines of reStructuredText."""
    lines: list[str] = []
    for element in elements:
        for child in element:
            if child.tag == "para":
                lines += paragraph(child)
            elif child.tag in blocks:
                lines += blocks[child.tag](child)
    return lines


def comment_of(entity) -> list[str]:
    return comment_lines(entity.find("briefdescription"), entity.find("detaileddescription"))


def summary_of(entity) -> str:
    """The first sentence of the comment."""
    lines = comment_of(entity)
    return re.split(r"(?<=\.)\s", lines[0])[0].rstrip(":") if lines else ""


# --- declarations ---------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    # Helpers of the implementation appear only as names of constraints and results, which the comments explain.
    return text.replace("detail::", "")


def template_of(entity) -> str:
    parameters = entity.find("templateparamlist")
    if parameters is None:
        return ""
    found = []
    for parameter in parameters.findall("param"):
        words = [text_of(parameter.find("type")), text_of(parameter.find("declname"))]
        default = text_of(parameter.find("defval"))
        found.append(" ".join(word for word in words if word) + (f" = {default}" if default else ""))
    constraint = text_of(entity.find("requiresclause"))
    return f"template <{', '.join(found)}> " + (f"requires {constraint} " if constraint else "")


def is_inherited_constructor(member) -> bool:
    return member.findtext("definition") == f"colock::{member.findtext('name')}::{member.findtext('name')}" != \
        member.findtext("qualifiedname")


def declaration_of(member) -> str:
    kind, name, type_ = member.get("kind"), member.findtext("name"), text_of(member.find("type"))
    if is_inherited_constructor(member):
        name = member.findtext("qualifiedname").split("::")[-2]
    visibility = "protected " if member.get("prot") == "protected" else ""
    if kind == "typedef":
        return plain(f"{template_of(member)}{visibility}{name} = {type_}")
    if kind == "variable":
        initializer = text_of(member.find("initializer"))
        static = "static " if member.get("static") == "yes" else ""
        return plain(f"{visibility}{static}{type_} {name} {'' if initializer == '{}' else initializer}")
    words = [
        "static" if member.get("static") == "yes" else "",
        "explicit" if member.get("explicit") == "yes" else "",
        "virtual" if member.get("virt") != "non-virtual" else "",
        type_,
    ]
    words = [word for word in words if word and not (word == "virtual" and "virtual" in type_)]
    return plain(f"{template_of(member)}{visibility}{' '.join(words)} {name}{text_of(member.find('argsstring'))}")


directives = {"function": "function", "friend": "function", "variable": "member", "typedef": "type"}


def is_public(member, kinds: str) -> bool:
    if member.get("kind") == "friend" and not member.findtext("argsstring"):
        return False
    wanted = ("define",) if kinds == "define" else (*directives, "enum")
    return member.get("prot") != "private" and member.get("kind") in wanted


def place_of(entity) -> tuple[str, int]:
    location = entity.find("location")
    return location.get("file"), int(location.get("line", 0))


def explains_itself(member) -> bool:
    return (bool(re.match(r"~|operator=", member.findtext("name")))
            or bool(re.search(r"=\s*(default|delete)$", member.findtext("argsstring") or ""))
            or is_inherited_constructor(member))


def has_plain_form(name: str, names) -> bool:
    return "async_" in name and name.replace("async_", "") in names


def with_folded_async_forms(entries: list[tuple[str, list[str]]]) -> list[str]:
    """The lines of all entries. An `async_` function follows its plain form, and is folded."""
    names = [name for name, _ in entries]
    written: set[str] = set()
    lines: list[str] = []
    for name, overloads in itertools.groupby(entries, key=lambda entry: entry[0]):
        if has_plain_form(name, names):
            continue
        lines += [line for _, entry in overloads for line in entry]
        async_name = f"async_{name}"
        if async_name in names and name not in written:
            lines += [".. raw:: html", "", f"    <details><summary><code>{async_name}</code></summary>", ""]
            lines += [line for other, entry in entries if other == async_name for line in entry]
            lines += [".. raw:: html", "", "    </details>", ""]
        written.add(name)
    return lines


# --- pages ----------------------------------------------------------------------------------------------------------


class reference:
    def __init__(self, directory: pathlib.Path) -> None:
        files = [xml.parse(file) for file in sorted(directory.glob("*.xml"))]
        self.compounds = {compound.get("id"): compound for file in files for compound in file.iter("compounddef")}
        self.undocumented: list[str] = []

    def required_comment(self, entity, name: str, place: tuple[str, int]) -> list[str]:
        """The comment of an entity. If there is none, this is recorded as an error."""
        lines = comment_of(entity)
        if not lines:
            self.undocumented.append(f"include/{place[0]}:{place[1]}: error: no comment for {name}")
        return lines

    def inner(self, compound, kinds: str) -> list:
        """The public classes and members directly in a namespace, class or file."""
        members = [member for member in compound.iter("memberdef") if is_public(member, kinds)]
        if kinds == "define":
            return members
        classes = [inner for inner in compound.findall("innerclass") if inner.get("prot") != "private"]
        return [*members, *(self.compounds[inner.get("refid")] for inner in classes)]

    def enumeration(self, member) -> list[str]:
        kind = "enum-class" if member.get("strong") == "yes" else "enum"
        # Sphinx shows a name that begins with @ as unnamed. It must be unique in its scope.
        name = re.sub(r"^(@.*)?$", f"@{place_of(member)[1]}", member.findtext("name"))
        lines = [f".. cpp:{kind}:: {name}", "", *indented(self.required_comment(member, name, place_of(member)), 4)]
        for value in member.findall("enumvalue"):
            value_name = value.findtext("name")
            lines += [f"    .. cpp:enumerator:: {value_name} {text_of(value.find('initializer'))}".rstrip(), ""]
            lines += indented(self.required_comment(value, f"{name}::{value_name}", place_of(member)), 8)
        return lines

    def type_(self, compound) -> list[str]:
        full = compound.findtext("compoundname")
        bases = ", ".join(f"{base.get('prot')} {text_of(base)}" for base in compound.findall("basecompoundref"))
        head = f".. cpp:{compound.get('kind')}:: {template_of(compound)}{full.rpartition('::')[2]}"
        body = self.required_comment(compound, full, place_of(compound))
        body += self.entities(self.inner(compound, "code"), full)
        return [head + (f" : {bases}" if bases else ""), "", *indented(body, 4), ""]

    def entities(self, found: list, scope: str) -> list[str]:
        """The entities in the order of their declarations. Overloads become one entry."""
        entries: list[tuple[str, list[str]]] = []
        end_of_declarations, previous = 0, None
        for entity in sorted(found, key=place_of):
            kind, name = entity.get("kind"), entity.findtext("name")
            if entity.tag == "compounddef":
                lines = self.type_(entity)
            elif kind == "enum":
                lines = [*self.enumeration(entity), ""]
            elif kind == "define":
                comment = self.required_comment(entity, name, place_of(entity))
                lines = [f".. c:macro:: {name}", "", *indented(comment, 4), ""]
            else:
                head = f".. cpp:{directives[kind]}:: "
                if kind == "function" and name == previous and not comment_of(entity):
                    entries[-1][1].insert(end_of_declarations, " " * len(head) + declaration_of(entity))
                    end_of_declarations += 1
                    continue
                comment = comment_of(entity) if explains_itself(entity) \
                    else self.required_comment(entity, f"{scope}::{name}", place_of(entity))
                # The comment of an `async_` function consists of its completion signature.
                if name.startswith("async_") and comment and comment[0].startswith("``void("):
                    comment[0] = (f"The form of ``{name.removeprefix('async_')}`` that takes a completion token. "
                                  f"Completes with {comment[0]}" + ("." if comment[0].endswith("``") else ""))
                end_of_declarations = 1
                lines = [head + declaration_of(entity), "", *indented(comment, 4), ""]
            entries.append((name or "", lines))
            previous = name
        return with_folded_async_forms(entries)

    def page(self, header: str) -> tuple[list[str], dict[str, str]]:
        """The page of a header, and the names of its entities with the summaries of their comments."""
        lines = [*title(header), ".. code-block:: cpp", "", f"    #include <colock/{header}>", ""]
        names: dict[str, str] = {}
        for space in self.compounds.values():
            scope = space.findtext("compoundname")
            is_namespace = space.get("kind") == "namespace" and scope.startswith("colock")
            if not is_namespace and space.get("kind") != "file":
                continue
            found = [entity for entity in self.inner(space, "code" if is_namespace else "define")
                     if place_of(entity)[0] == f"colock/{header}"]
            if is_namespace and found:
                lines += [f".. cpp:namespace:: {scope}", "", f"Namespace ``{scope}``.", ""]
                lines += comment_of(space) if place_of(space)[0] == f"colock/{header}" else []
            lines += self.entities(found, scope)
            for entity in sorted(found, key=place_of):
                name = entity.findtext("compoundname") or entity.findtext("qualifiedname") or entity.findtext("name")
                # Several headers declare functions of these names.
                if re.search(r"::(to_string|operator<<)$", name):
                    name += f"({', '.join(text_of(param.find('type')) for param in entity.findall('param'))})"
                names.setdefault(name.removeprefix("colock::"), summary_of(entity))
        self.undocumented += [f"include/colock/{header}: error: no sentence for {name} in the index"
                              for name, summary in names.items() if not summary]
        return lines, {name: text for name, text in names.items() if not has_plain_form(name, names)}


def topic_of(header: str) -> tuple[str, int]:
    """The topic of a header, and the place of the header in it."""
    # In a pattern, * also matches a slash.
    return next((topic, place) for topic, patterns in topics.items() for place, pattern in enumerate(patterns)
                if fnmatch.fnmatch(header, pattern))


def title(text: str, underline: str = "=") -> list[str]:
    return [text, underline * len(text), ""]


def navigation(pages) -> list[str]:
    return [".. toctree::", "   :hidden:", "", *[f"   {page}" for page in pages], ""]


def table(widths: str, rows: list[list[str]]) -> list[str]:
    lines = [".. list-table::", f"   :widths: {widths}", "   :header-rows: 1", ""]
    for row in rows:
        lines += [f"   {'*' if number == 0 else ' '} - {cell}" for number, cell in enumerate(row)]
    return lines


def reference_to(name: str, page: str) -> str:
    if "(" in name:
        # Sphinx cannot link to one of several functions of the same name.
        return f":doc:`{escape(name)} <{page}>`"
    return f":c:macro:`{name}`" if name.isupper() else f":cpp:any:`{name} <colock::{name}>`"


def file_of(topic: str) -> str:
    return topic.lower().replace(" ", "-")


def write(page: pathlib.Path, lines: list[str]) -> None:
    page = page.with_suffix(".rst")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join([*lines, ""]))


def main() -> None:
    source, target = map(pathlib.Path, sys.argv[1:])
    made = reference(source)
    headers = sorted(place_of(compound)[0].removeprefix("colock/") for compound in made.compounds.values()
                     if compound.get("kind") == "file")
    by_topic: dict[str, list[tuple]] = {topic: [] for topic in topics}
    for header in headers:
        lines, names = made.page(header)
        if not names:
            continue
        page = f"colock/{header.removesuffix('.hpp')}"
        write(target / page, lines)
        topic, place = topic_of(header)
        for name, summary in names.items():
            # The names of a header begin with the one after which it is called.
            order = (bool(re.search(helpers, name)), place, header, name.rpartition("::")[2] != pathlib.Path(page).name)
            by_topic[topic].append((order, reference_to(name, page), summary, page))

    index = title("Reference")
    index += navigation(file_of(topic) for topic in topics)
    for topic, rows in by_topic.items():
        rows.sort(key=lambda row: row[0])
        file = file_of(topic)
        pages = dict.fromkeys(page for _, _, _, page in rows)
        write(target / file, [
            *title(topic), *navigation(pages),
            *table("30 50 20", [["name", "contents", "header"],
                                *([link, summary, f":doc:`{page}`"] for _, link, summary, page in rows)]),
        ])
        index += [*title(f":doc:`{topic} <{file}>`", "-"),
                  *table("30 70", [["name", "contents"], *([link, summary] for _, link, summary, _ in rows)]), ""]
    write(target / "index", index)
    if made.undocumented or not headers:
        sys.exit("\n".join(made.undocumented) or "reference: error: no headers")


if __name__ == "__main__":
    main()

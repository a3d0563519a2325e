"""Configuration of Sphinx for the site that scripts/docs.sh makes. The source directory contains the Markdown pages as
they are in the repository, with README.md as index.md, and in reference/ the pages of scripts/reference.py."""
import json
import pathlib
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.cpp import CPPDomain
from sphinx.util.nodes import make_refnode

project = "colock"
extensions = ["myst_parser", "sphinx.ext.graphviz"]
graphviz_output_format = "svg"
myst_heading_anchors = 6
cpp_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "colock"
html_static_path = ["site.css", "site.js"]
html_css_files = ["site.css"]
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False

repository = pathlib.Path(__file__).parent.parent.parent

# Pages with pages below them in the navigation.
children = {"docs/design/README": "*", "docs/benchmarks": "benchmarks/*"}


def graphviz(diagram: str) -> str:
    """A flowchart of Mermaid in the language of Graphviz."""
    node = r'(\w+)(?:\["([^"]*)"\])?'
    arrow = r"(-->|==>|-\. .* \.->|== .* ==>)"
    font = 'fontname="sans-serif", fontsize=11'
    lines = ["nodesep=0.4", f"node [shape=box, {font}]", f"edge [{font}]"]
    for line in diagram.strip().splitlines()[1:]:
        match = re.fullmatch(rf"\s*{node} {arrow} {node}", line)
        if not match:
            raise ValueError(f"this line of a diagram is not understood: {line}")
        first, first_label, line_kind, second, second_label = match.groups()
        for name, label in ((first, first_label), (second, second_label)):
            if label:
                lines.append(f'{name} [label="{label}"]'.replace("<br>", "\\n"))
        style = "bold" if line_kind.startswith("=") else "dashed" if line_kind.startswith("-.") else "solid"
        lines.append(f'{first} -> {second} [style={style}, label="{line_kind.strip("-=.> ")}"]')
    return "\n".join(["```{graphviz}", "digraph {", *lines, "}", "```"])


def adapt_page(app, docname: str, source: list[str]) -> None:
    """Makes the README the home page, and a link to a folder plain text. Sphinx copies other files that are linked."""
    folder = (repository / docname).parent

    def adapted(match: re.Match) -> str:
        text, target = match[1], match[2]
        file = (folder / target.partition("#")[0]).resolve()
        if file == repository / "README.md":
            return f"[{text}]({target.replace('README.md', 'index.md')})"
        return text if file.is_dir() else match[0]

    source[0] = re.sub(r"```mermaid\n(.*?)```", lambda match: graphviz(match[1]), source[0], flags=re.DOTALL)
    if docname in children:
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{children[docname]}\n```\n"
    source[0] = re.sub(r"\[([^\[\]]+)\]\(([\w./-][\w./#-]*)\)", adapted, source[0])


class cpp_domain(CPPDomain):
    """Without the parameters of functions and templates, which would fill the search results."""

    def get_objects(self):
        return (entry for entry in super().get_objects() if entry[2] not in ("functionParam", "templateParam"))


class name_table:
    """The names of the reference, without the prefix `colock::`."""

    def __init__(self, env) -> None:
        self.places: dict[str, tuple[str, str]] = {}
        self.names: dict[tuple[str, str], str] = {}
        for name, _, _, docname, anchor, _ in env.get_domain("cpp").get_objects():
            name = name.removeprefix("colock::")
            self.places.setdefault(name, (docname, anchor))
            self.names[docname, anchor] = name

    def scopes(self, docname: str, node) -> list[str]:
        """The classes and namespaces around a node, the innermost first, and the error codes."""
        while node is not None and not isinstance(node, addnodes.desc):
            node = node.parent
        if node is None:
            return ["", "errc::"]
        anchors = node[0].get("ids", [])
        name = next((self.names[docname, anchor] for anchor in anchors if (docname, anchor) in self.names), "")
        parts = name.split("::")
        return ["".join(part + "::" for part in parts[:count]) for count in range(len(parts), -1, -1)] + ["errc::"]


def link_names(app, doctree, docname: str) -> None:
    """Makes a link of each name in `code` that is in the reference. On other pages than those of the reference, the
    name must contain :: or _, because many names of members are words that have other meanings too."""
    if not hasattr(app, "colock_names"):
        app.colock_names = name_table(app.env)
    table = app.colock_names
    in_reference = docname.startswith("reference/")
    for literal in list(doctree.findall(nodes.literal)):
        if isinstance(literal.parent, (nodes.reference, nodes.title)):
            continue
        match = re.fullmatch(r"(?:colock::)?([a-z_][a-z0-9_:]*)(?:\(.*\))?", literal.astext())
        if not match or not (in_reference or re.search("::|_", literal.astext())):
            continue
        scopes = table.scopes(docname, literal) if in_reference else [""]
        found = next((scope + match[1] for scope in scopes if scope + match[1] in table.places), None)
        if found:
            place, anchor = table.places[found]
            literal.replace_self(make_refnode(app.builder, docname, place, anchor, literal.deepcopy()))


def add_scripts(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """The scripts of a page. Those of the search page follow Sphinx's, which they change."""
    if pagename == "search":
        app.add_js_file("page_texts.js", priority=900)
    app.add_js_file("site.js", priority=901)


def write_page_texts(app, failure: Exception | None) -> None:
    """Writes a script with the texts of all pages, from which the search page takes its excerpts."""
    if failure:
        return

    def plain_tag(tag: re.Match) -> str:
        # The structure and the anchors are enough to find the text of a result.
        anchor = re.search(r' id="[^"]*"', tag[2])
        kept = tag[1].strip("/") in ("section", "dl", "dt", "dd") or anchor
        return f"<{tag[1]}{anchor[0] if anchor else ''}>" if kept else ""

    texts = {}
    for docname in app.env.found_docs:
        page = pathlib.Path(app.outdir, docname + ".html").read_text()
        text = re.search(r'<article role="main"[^>]*>(.*?)</article>', page, flags=re.DOTALL)[1]
        text = re.sub(r'<a class="headerlink".*?</a>', "", text, flags=re.DOTALL)
        text = re.sub(r"<(/?\w+)([^>]*)>", plain_tag, text)
        texts[docname + ".html"] = f'<div role="main">{text}</div>'
    script = "const page_texts = " + json.dumps(texts, ensure_ascii=False) + ";\n"
    pathlib.Path(app.outdir, "_static", "page_texts.js").write_text(script)


def setup(app) -> dict:
    app.add_domain(cpp_domain, override=True)
    app.connect("source-read", adapt_page)
    app.connect("doctree-resolved", link_names)
    app.connect("html-page-context", add_scripts)
    app.connect("build-finished", write_page_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

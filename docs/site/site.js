// Shows an async_ function that a link leads to, which is folded under its plain form.
const unfold = () => document.getElementById(location.hash.slice(1))?.closest("details")?.setAttribute("open", "");
addEventListener("hashchange", unfold);
document.addEventListener("DOMContentLoaded", unfold);

// On the search page: takes excerpts from page_texts.js, because a browser does not read other pages of a site that it
// shows from a file. The event comes before the search begins, because Sphinx's listener is added later.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof page_texts === "undefined") return;
  const text_of_page = Search.htmlToText;
  window.fetch = async (address) => ({ text: () => page_texts[address.replace(/^[.]\//, "")] });
  // The text of a declaration is the comment behind it.
  Search.htmlToText = (page, anchor) => {
    const target = anchor && new DOMParser().parseFromString(page, "text/html").getElementById(anchor.slice(1));
    return target?.tagName === "DT"
      ? target.parentElement.querySelector(":scope > dd").textContent
      : text_of_page(page, anchor);
  };
  // A result with a description has no excerpt. The description of a declaration becomes a part of its title. Of
  // several overloads, the first one is shown.
  const declarations = Search.performObjectSearch;
  Search.performObjectSearch = (...query) => {
    const found = new Map();
    for (const [page, name, anchor, description, ...rest] of declarations(...query)) {
      const title = `${name} (${description})`;
      if (!found.has(title)) found.set(title, [page, title, anchor, null, ...rest]);
    }
    return [...found.values()];
  };
});

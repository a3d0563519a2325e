#!/usr/bin/env bash
# Makes the documentation as a site that can be read offline: the pages of docs/, the README, and the reference of the
# public headers. Then checks each link of the site. Warnings, and public names without a comment, are errors.
#
#   scripts/docs.sh
#
# Open build/docs/site/index.html in a browser.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/environment.sh

scripts/setup.sh docs

out=build/docs
rm -rf "$out"
mkdir -p "$out/source"
doxygen docs/site/Doxyfile
"$colock_docs/bin/python" scripts/reference.py "$out/xml" "$out/source/reference"

# The pages link to examples and to the licence.
cp -R docs examples CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE "$out/source"
rm -r "$out/source/docs/site"
cat README.md docs/site/contents.md >"$out/source/index.md"
"$colock_docs/bin/sphinx-build" -q -W --keep-going -j auto -c docs/site -d "$out/doctrees" "$out/source" "$out/site"

scripts/links.py "$out/site"
echo "docs: $out/site/index.html"

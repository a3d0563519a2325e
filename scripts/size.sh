#!/usr/bin/env bash
# Prints the lines of code of each folder of src/ and include/. Blank lines and lines that only hold a comment do not
# count.
#
#   scripts/size.sh [COMMIT]
#
# With a commit, each row also has the number at that commit and the difference. Counts what git tracks, as it is in the
# working tree.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

base=
[ $# -eq 0 ] || base=$(git rev-parse --verify --quiet "$1^{commit}") || {
    echo "size: error: '$1' is not a commit" >&2
    exit 1
}

# Lines of: "now" or "before", file, number of lines of code
count_lines() {
    git grep --no-color -Evc '^[[:space:]]*(//.*)?$' "${@:2}" -- 'src/*.cpp' 'src/*.hpp' 'include/*.hpp' |
        sed -E "s/^[0-9a-f]{40}://; s/^/$1:/"
}

{
    count_lines now
    [ -z "$base" ] || count_lines before "$base"
} | awk -F : -v compare="$base" '
    # A file counts for its folder and for every folder above it.
    {
        for (folder = $2; sub(/\/[^\/]*$/, "", folder); ) {
            lines[folder, $1] += $3
            folders[folder] = 1
        }
    }
    END {
        for (folder in folders) {
            now = lines[folder, "now"] + 0
            before = lines[folder, "before"] + 0
            if (compare) printf "%-24s %7d %7d %+7d\n", folder, before, now, now - before
            else printf "%-24s %7d\n", folder, now
        }
    }' | LC_ALL=C sort

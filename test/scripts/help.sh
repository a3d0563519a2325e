#!/usr/bin/env bash
# Checks that every script prints its help without a compiler, a package manager or a build.
#
#   test/scripts/help.sh [SCRIPT PROGRAM]...
#
# The help of SCRIPT has to name every option of PROGRAM, which SCRIPT builds and runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

failed=0
bad() {
    printf 'help: error: %s\n' "$*" >&2
    failed=1
}

# This folder, used as PATH, contains only the tools that the help itself needs.
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
for tool in bash dirname sed timeout; do
    ln -s "$(command -v $tool)" "$tools/$tool"
done

help_of() { env -i PATH="$tools" timeout 5 bash "$@"; }

for script in scripts/*.sh .ci/run; do
    # These two scripts are only sourced.
    case $script in scripts/environment.sh | scripts/usage.sh) continue ;; esac
    for option in --help -h; do
        text=$(help_of "$script" "$option") || bad "$script $option exits with $?"
        [[ $text == *"$script"* ]] || bad "$script $option does not say how the script is called"
    done
    [ "$(help_of "$script" an_argument --help)" = "$text" ] || bad "$script does not look for --help behind an argument"
done

while [ $# -gt 1 ]; do
    text=$(help_of "$1" --help)
    options=$("$2" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
    [ -n "$options" ] || bad "$2 has no options"
    for option in $options; do
        [[ $text =~ (^|[^a-z-])"$option"([^a-z-]|$) ]] || bad "$1 --help lacks $option of $2"
    done
    shift 2
done
exit $failed

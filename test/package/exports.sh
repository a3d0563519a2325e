#!/usr/bin/env bash
# Checks that the shared libraries define no other symbols than colock's own, and that only public headers export any.
#
#   test/package/exports.sh PREFIX
set -euo pipefail
checked=0
for library in $(find "$1" -name 'libcolock-*.so'); do
    # Weak symbols (V, W, u) belong to templates and inline functions, which every program has copies of.
    foreign=$(nm --dynamic --defined-only --demangle "$library" | awk '$2 !~ /[VWu]/' | grep -v ' colock::v0::' |
        grep -vE ' (typeinfo|typeinfo name|vtable|guard variable) for colock::v0::' || true)
    if [ -n "$foreign" ]; then
        printf '%s exports:\n%s\n' "$library" "$foreign" >&2
        exit 1
    fi
    checked=$((checked + 1))
done
[ "$checked" -gt 1 ] || {
    echo "exports: error: no shared libraries in $1" >&2
    exit 1
}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if grep -rn COLOCK_EXPORT src; then
    echo "exports: error: only public headers may export symbols" >&2
    exit 1
fi

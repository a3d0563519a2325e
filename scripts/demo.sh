#!/usr/bin/env bash
# Builds and runs the ticket office: hundreds of clients race for seats over real sockets, and none is sold twice.
#
#   scripts/demo.sh [OPTION]...     (scripts/demo.sh --help lists the demo's options)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/build.sh" release ticket_office
exec "$root/build/release/examples/ticket_office" "$@"

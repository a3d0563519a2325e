#!/usr/bin/env bash
# Builds and runs the ticket office: hundreds of clients compete for seats over real sockets, and no seat is sold twice.
#
#   scripts/demo.sh [OPTION]...
#
#   --backend URL     URL of the lock service; default: memory:
#   --clients N       concurrent connections, 1 to 450; default: 300
#   --seats N         1 to 1000000; default: 15000
#   --limit SECONDS   the office closes after this time; default: 13
#   --unlocked        sells without the lock, to show the oversold seats
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/build.sh" release ticket_office
exec "$root/build/release/examples/ticket_office" "$@"

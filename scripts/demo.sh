#!/usr/bin/env bash
# Builds and runs the ticket office: hundreds of clients race for seats over real sockets, and none is sold twice.
#
#   scripts/demo.sh [OPTION]...     (scripts/demo.sh --help lists the demo's options)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh release ticket_office
exec build/release/examples/ticket_office "$@"

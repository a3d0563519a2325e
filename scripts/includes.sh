#!/usr/bin/env bash
# Checks that each folder of src/ includes only the folders that it may depend on.
#
#   scripts/includes.sh
#
# Each rule names a folder of src/ and the folders that its files may include, in addition to their own folder. Public
# headers may be included everywhere.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rules='
util
core/policy         util
core/state          util core/policy
core/operations     util core/policy core/state
core/api            util core/policy core/state core/operations
core/spi            util
net                 util
remote/policy       util
remote/requests     util net remote/policy
remote/adapter      util net remote/policy remote/requests
memory              util
quorum              util net remote
redis               util net remote quorum
zookeeper           util net remote
mongo               util net remote
connect             util net
metrics             util
command             util net
'
git grep -nE '^#include "[a-z_]+/' -- src | awk -v rules="$rules" '
    function is_in(file, folder) { return folder == "*" || index(file, folder "/") == 1 }
    BEGIN {
        for (number = split(rules, line, "\n"); number > 0; --number) {
            split(line[number], folders, " ")
            may[folders[1]] = line[number]
        }
    }
    {
        split($0, part, /[:"]/)
        from = substr(part[1], 5)
        to = part[4]
        rule = ""
        for (folder in may)
            if (folder != "" && is_in(from, folder))
                rule = may[folder]
        allowed = 0
        for (number = split(rule, folders, " "); number > 0; --number)
            allowed = allowed || is_in(to, folders[number])
        if (!allowed) {
            printf "%s:%s: error: may not include %s (see scripts/includes.sh)\n", part[1], part[2], to
            failed = 1
        }
    }
    END { exit failed }'

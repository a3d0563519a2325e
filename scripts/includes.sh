#!/usr/bin/env bash
# Checks that each folder of src/ includes only the folders that it may depend on.
#
#   scripts/includes.sh
#
# Each rule names a folder of src/, or the files of one name, and what these may include, in addition to themselves. The
# longest name decides. Public headers may be included everywhere.
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
redis/cluster       util net remote redis/url redis/slot redis/settings redis/reply redis/failures redis/scripts redis/pipeline redis/operations redis/client
redis/operations    util net remote redis/url redis/slot redis/settings redis/reply redis/failures redis/scripts redis/pipeline
redis/pubsub        util net remote redis/url redis/slot redis/settings redis/reply redis/failures redis/scripts redis/pipeline redis/connection
redis/connection    util net remote redis/url redis/slot redis/settings redis/reply redis/failures redis/scripts redis/pipeline
redis/pipeline      util net remote redis/url redis/slot redis/settings redis/reply redis/failures redis/scripts
redis/scripts       util redis/url redis/slot redis/settings
redis/failures      util net remote redis/url redis/slot redis/settings redis/reply
redis/reply         util
redis/settings      util net remote redis/url redis/slot
redis/slot
redis/url           util net
zookeeper               util net remote
zookeeper/operations    util net remote zookeeper/url zookeeper/settings zookeeper/layout zookeeper/driver zookeeper/recipe zookeeper/session
zookeeper/session       util net remote zookeeper/url zookeeper/settings zookeeper/layout zookeeper/driver zookeeper/recipe
zookeeper/recipe        util net remote zookeeper/url zookeeper/settings zookeeper/layout zookeeper/driver
zookeeper/driver        util net remote zookeeper/url zookeeper/settings zookeeper/layout
zookeeper/layout        util
zookeeper/settings      util net remote zookeeper/url
zookeeper/url           util net
mongo               util net remote
mongo/operations    util net remote mongo/url mongo/settings mongo/driver mongo/templates mongo/commands mongo/topology
mongo/events        util net remote mongo/url mongo/settings mongo/driver mongo/templates mongo/commands mongo/topology
mongo/topology      util net remote mongo/url mongo/settings mongo/driver mongo/templates mongo/commands
mongo/commands      util net remote mongo/url mongo/settings mongo/driver mongo/templates
mongo/templates     util net remote mongo/url mongo/settings mongo/driver
mongo/driver        util net remote mongo/url mongo/settings
mongo/settings      util net remote mongo/url
mongo/url           util net
connect             util net
metrics             util
testing
command             util net
'
git grep -nE '^#include "[a-z_]+/' -- src | awk -v rules="$rules" '
    function is_in(file, name) { return index(file, name "/") == 1 || index(file, name ".") == 1 }
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
        longest = ""
        for (name in may)
            if (is_in(from, name) && length(name) > length(longest))
                longest = name
        rule = may[longest]
        allowed = 0
        for (number = split(rule, folders, " "); number > 0; --number)
            allowed = allowed || is_in(to, folders[number])
        if (!allowed) {
            printf "%s:%s: error: may not include %s (see scripts/includes.sh)\n", part[1], part[2], to
            failed = 1
        }
    }
    END { exit failed }'

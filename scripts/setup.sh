#!/usr/bin/env bash
# Installs the tools and libraries that colock is built and tested with. If everything is installed, ends at once.
#
#   scripts/setup.sh [build|sanitizers|coverage|tidy|format|debootstrap|servers|redis8|valkey8|valkey9|zookeeper|
#                    mongodb|mongodb_native|ferretdb|peers|prometheus|conan|docs]...
#
# Without a name: build.
#
# On Debian 12 and 13, missing packages are installed from the system's archive. Boost 1.92 is newer than the Boost of
# both; it is unpacked into ${XDG_CACHE_HOME:-~/.cache}/colock. With COLOCK_BOOST=system, the system's own Boost is used
# instead (Debian 13: 1.83), which is sufficient for all backends except Redis. On other systems, the script prints what
# to install.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

boost_version=1.92 # environment.sh contains this version in the name of a folder
toxiproxy_version=2.5.0

say() { printf 'setup: %s\n' "$*"; }
fail() {
    printf 'setup: error: %s\n' "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null; }

case $(. /etc/os-release 2>/dev/null && echo "${ID:-} ${VERSION_ID:-}") in
"debian 12") debian=12 compiler_package=clang-19 ;;
"debian 13") debian=13 compiler_package=g++ ;;
*) debian='' ;;
esac

# --- packages -------------------------------------------------------------------------------------------------------

missing=()     # Debian packages
missing_text=() # descriptions of the same packages, for systems other than Debian

# need COMMAND PACKAGE DESCRIPTION: notes PACKAGE as missing unless COMMAND succeeds
need() {
    if ! eval "$1" >/dev/null 2>&1; then
        missing+=("$2")
        missing_text+=("$3")
    fi
}

install_missing() {
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ -z "$debian" ]; then
        fail "this system is not Debian 12 or 13; install these and run again: $(join "${missing_text[@]}")"
    fi
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        have sudo || fail "not root and no sudo; as root, run: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}")
    # The package lists may be missing or too old. Then they are updated, and the installation is tried once more.
    if ! "${as_root[@]}" "${install[@]}" >"$log" 2>&1; then
        say "refreshing the package lists"
        "${as_root[@]}" apt-get update -q >"$log" 2>&1 || { cat "$log" >&2; fail "apt-get update failed"; }
        "${as_root[@]}" "${install[@]}" >"$log" 2>&1 || { cat "$log" >&2; fail "apt-get could not install ${missing[*]}"; }
    fi
    missing=() missing_text=()
}

join() {
    local text=$1
    shift
    for item; do text+="; $item"; done
    printf '%s' "$text"
}

# --- Boost ----------------------------------------------------------------------------------------------------------

boost_is_there() {
    compgen -G "$colock_boost/lib/*/libboost_program_options.a" >/dev/null || boost_is_found "$boost_version" headers
}

# boost_is_found VERSION COMPONENT: whether CMake finds this version or a later one
boost_is_found() {
    local probe=$scratch/boost
    mkdir -p "$probe"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(probe CXX)' \
        "find_package(Boost $1 CONFIG REQUIRED COMPONENTS $2)" >"$probe/CMakeLists.txt"
    cmake -S "$probe" -B "$probe/build" -G Ninja >/dev/null 2>&1
}

# use_archive ARCHIVE SUITE: prepares an apt configuration for this suite, in the array private_apt. The configuration of
# the system's apt is not changed, and none of its packages count as installed.
use_archive() {
    local apt=$scratch/apt
    rm -rf "$apt"
    mkdir -p "$apt"/{lists,cache/archives}/partial "$apt/none"
    : >"$apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $1 $2 main" >"$apt/sources.list"
    private_apt=(apt-get
        -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/none"
        -o Dir::Etc::Preferences="$apt/none/none" -o Dir::Etc::PreferencesParts="$apt/none"
        -o Dir::State::Lists="$apt/lists" -o Dir::State::Status="$apt/status" -o Dir::Cache="$apt/cache"
        -o APT::Sandbox::User="$(id -un)"
    )
    "${private_apt[@]}" update -q >"$log" 2>&1
}

# Debian's trixie-backports contains Boost 1.92. The packages are unpacked, not installed.
fetch_boost() {
    local archive archives packages=$scratch/packages unpacked=$scratch/unpacked
    archives=$(colock_debian_archives)
    [ -n "$archives" ] || fail "apt has no archive of Debian's main packages, so Boost $boost_version cannot be installed; set Boost_DIR"

    mkdir -p "$packages" "$unpacked"
    local wanted=("libboost$boost_version-dev" "libboost-context$boost_version-dev" "libboost-context$boost_version.0"
        "libboost-program-options$boost_version-dev" "libboost-container$boost_version-dev")

    say "fetching Boost $boost_version into $colock_cache"
    for archive in $archives; do
        if use_archive "$archive" trixie-backports &&
            (cd "$packages" && "${private_apt[@]}" download -q "${wanted[@]}") >>"$log" 2>&1; then
            for package in "$packages"/*.deb; do
                dpkg -x "$package" "$unpacked"
            done
            mkdir -p "$colock_cache"
            rm -rf "${colock_boost%/usr}"
            mv "$unpacked" "${colock_boost%/usr}"
            return 0
        fi
    done
    cat "$log" >&2
    fail "trixie-backports does not contain Boost $boost_version; install it and set Boost_DIR or CMAKE_PREFIX_PATH"
}

# --- installable parts ----------------------------------------------------------------------------------------------

cmake_is_recent() { printf '3.25\n%s\n' "$(cmake --version | sed -n '1s/[^0-9]*//p')" | sort -VC; }

setup_build() {
    need '[ -n "${CXX:-}" ] && have "${CXX%% *}"' "${compiler_package:-}" "a C++20 compiler: GCC >= 13 or Clang >= 19; set CXX to its command"
    need 'cmake_is_recent' cmake "CMake >= 3.25"
    need 'have ninja' ninja-build "Ninja"
    need 'have make' make "make"
    need 'have ccache || [ -z "$debian" ]' ccache "ccache"
    need 'have pkg-config' pkg-config "pkg-config"
    need 'pkg-config --exists openssl' libssl-dev "OpenSSL >= 3 with its headers"
    # The headers are the same as those of the multithreaded client, which conflicts with this package. If the
    # multithreaded client is installed, it is kept, and colock::zookeeper is not built.
    need '[ -f /usr/include/zookeeper/zookeeper.h ] || [ -z "$debian" ]' libzookeeper-st-dev "ZooKeeper's C client"
    need 'pkg-config --atleast-version=3.35 sqlite3' libsqlite3-dev "SQLite >= 3.35 with its headers"
    need 'pkg-config --exists libmongoc-1.0 || [ -z "$debian" ]' libmongoc-dev "libmongoc >= 1.23 with its headers"
    if [ "${COLOCK_BOOST:-}" = system ]; then
        need 'boost_is_found 1.83 headers' libboost-dev "Boost >= 1.83"
        need 'boost_is_found 1.83 context' libboost-context-dev "Boost.Context >= 1.83"
        need 'boost_is_found 1.83 program_options' libboost-program-options-dev "Boost.Program_options >= 1.83"
    fi
    install_missing
    . "$colock_root/scripts/environment.sh"

    if [ "${COLOCK_BOOST:-}" != system ] && ! boost_is_there; then
        [ -n "$debian" ] || fail "Boost >= $boost_version was not found: install it, and set Boost_DIR or CMAKE_PREFIX_PATH"
        fetch_boost
        . "$colock_root/scripts/environment.sh"
    fi
    say "build: ready ($CXX)"
}

setup_sanitizers() {
    setup_build
    if [ "$CXX" = clang++-19 ]; then
        need 'echo "int main() {}" | "$CXX" -x c++ -fsanitize=address -o "$scratch/probe" -' \
            libclang-rt-19-dev "the sanitizers' run-time library of $CXX"
        need 'have llvm-symbolizer-19 || [ -x /usr/lib/llvm-19/bin/llvm-symbolizer ]' llvm-19 "llvm-symbolizer"
    fi
    install_missing
    say "sanitizers: ready"
}

# Only the LLVM tools of the compiler's version can read the coverage counters of a build.
setup_coverage() {
    setup_sanitizers
    [ "$CXX" = clang++-19 ] || fail "coverage needs clang++-19; unset CXX"
    need 'have llvm-profdata-19 && have llvm-cov-19' llvm-19 "llvm-profdata-19 and llvm-cov-19"
    install_missing
    say "coverage: ready"
}

setup_tidy() {
    setup_build
    need 'have git' git "git"
    need 'have clang-tidy-19' clang-tidy-19 "clang-tidy 19"
    install_missing
    say "tidy: ready"
}

setup_format() {
    need 'have git' git "git"
    need 'have clang-format-19' clang-format-19 "clang-format 19"
    need 'have codespell' codespell "codespell"
    install_missing
    say "format: ready"
}

setup_debootstrap() {
    need 'have debootstrap' debootstrap "debootstrap"
    install_missing
    say "debootstrap: ready"
}

toxiproxy_is_there() { [ -n "${COLOCK_TOXIPROXY:-}" ] || [ -x "$colock_toxiproxy" ]; }

setup_servers() {
    # The package redis-tools contains the server's binary. The package redis-server only adds the name of the binary
    # and a system service, which the tests do not need.
    need 'have redis-server || have redis-check-rdb' redis-tools "redis-server >= 6.2"
    need 'have openssl' openssl "the openssl command"
    need 'have curl' curl "curl"
    need 'toxiproxy_is_there || have go' golang-go "Go (to build Toxiproxy $toxiproxy_version)"
    install_missing

    if ! have redis-server && [ ! -x "$colock_redis_server" ]; then
        mkdir -p "$(dirname "$colock_redis_server")"
        ln -sf "$(command -v redis-check-rdb)" "$colock_redis_server"
    fi
    if ! toxiproxy_is_there; then
        say "building Toxiproxy $toxiproxy_version into $colock_cache"
        GOBIN=$scratch/toxiproxy GOFLAGS=-modcacherw GOPATH=$scratch/go GOCACHE=$scratch/go-build \
            go install "github.com/Shopify/toxiproxy/v2/cmd/server@v$toxiproxy_version" >"$log" 2>&1 ||
            { cat "$log" >&2; fail "Toxiproxy $toxiproxy_version could not be built"; }
        mkdir -p "$colock_cache"
        mv "$scratch/toxiproxy" "$(dirname "$colock_toxiproxy")"
    fi
    say "servers: ready"
}

# Installs newer servers of Redis's protocol. If one cannot be installed, its tests are skipped.
setup_redis8() { install_redis redis8 trixie redis; }
setup_valkey8() { install_redis valkey8 trixie valkey; }
setup_valkey9() { install_redis valkey9 sid valkey; }

# install_redis KIND SUITE PROGRAM: unpacks a server of another Debian with all libraries that it needs
#
# The program is a script, because these libraries need a loader of the same version.
install_redis() {
    local folder=$colock_cache/$1 unpacked=$scratch/$1 version=${1//[^0-9]/} archive package reported
    [ -x "$folder/redis-server" ] && say "$1: ready" && return 0
    [ -n "$debian" ] || { say "$1: not installed (needs Debian 12 or 13); its tests are skipped"; return 0; }
    say "unpacking ${1%"$version"} $version into $folder"
    for archive in $(colock_debian_archives); do
        use_archive "$archive" "$2" &&
            "${private_apt[@]}" install -y -q --download-only --no-install-recommends "$3-tools" >>"$log" 2>&1 || continue
        mkdir -p "$unpacked"
        for package in "$scratch"/apt/cache/archives/{lib,zlib,"$3-tools"}*.deb; do
            dpkg -x "$package" "$unpacked/root"
        done
        # The server is also the program that checks files, depending on its name.
        ln -sf "$3-check-rdb" "$unpacked/root/usr/bin/$3-server"
        (
            cd "$unpacked/root"
            # shellcheck disable=SC2016 # expanded in the script that is written
            printf '%s\n' '#!/bin/sh' "# Runs the server with its own loader and libraries." \
                'root=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)/root' \
                'exec "$root/'"$(compgen -G 'usr/lib*/ld-linux-*.so.*' | head -n 1)"'" \
    --library-path "$root/'"$(dirname usr/lib/*/libjemalloc.so.2)"'" "$root/usr/bin/'"$3-server"'" "$@"'
        ) >"$unpacked/redis-server"
        chmod +x "$unpacked/redis-server"
        reported=$("$unpacked/redis-server" --version 2>>"$log" || true)
        [[ $reported = *" v=$version."* ]] || { echo "this is ${reported:-no server}" >>"$log"; continue; }
        rm -rf "$folder"
        mv "$unpacked" "$folder"
        say "$1: ready"
        return 0
    done
    say "$1: not installed ($(grep . "$log" | tail -n 1)); its tests are skipped"
}

setup_zookeeper() {
    need 'have java' default-jre-headless "a Java runtime >= 11"
    need 'zookeeper_is_there' libzookeeper-java "ZooKeeper >= 3.6; set COLOCK_ZOOKEEPER_CLASSES to its class path"
    # Tests change the files of a stopped server with a program in Python.
    need '[ -x /usr/bin/python3 ]' python3 "Python >= 3.10 as /usr/bin/python3"
    install_missing
    say "zookeeper: ready"
}
zookeeper_is_there() { [ -n "${COLOCK_ZOOKEEPER_CLASSES:-}" ] || [ -f "${colock_zookeeper_classes%%:*}" ]; }

# Installs a server that speaks MongoDB's protocol. If it cannot be installed, its tests are skipped.
setup_mongodb() {
    mongodb_is_there && say "mongodb: ready" && return 0
    if [ -n "$debian" ]; then
        need 'python3 -c "import venv, ensurepip"' python3-venv "Python >= 3.10 with venv"
        install_missing
    fi
    say "installing a MongoDB test server into $colock_mongodb"
    if python3 -m venv --clear "$colock_mongodb" >"$log" 2>&1 &&
        "$colock_mongodb/bin/pip" install "SecantusDB==${colock_mongodb##*-}" >>"$log" 2>&1; then
        touch "$colock_mongodb/installed"
        say "mongodb: ready"
    else
        say "mongodb: no server was installed ($(grep . "$log" | tail -n 1)); the tests that need one are skipped"
    fi
}
mongodb_is_there() { [ -n "${COLOCK_MONGODB_SERVER:-}" ] || [ -f "$colock_mongodb/installed" ]; }

# Builds another server of MongoDB's protocol, which is five times as fast. The benchmark and a second run of the tests
# use it. The build takes some minutes, once.
setup_mongodb_native() {
    mongodb_native_is_there && say "mongodb_native: ready" && return 0
    if ! cargo_is_recent 2>/dev/null; then
        say "mongodb_native: not built (needs cargo >= 1.95); its tests are skipped"
        return 0
    fi
    say "building a MongoDB test server into $colock_mongodb_native"
    if cargo install --ignore-rust-version --locked --root "$scratch/native" --target-dir "$scratch/native-build" \
        secantus-mdb --version "${colock_mongodb_native##*-native-}" >"$log" 2>&1; then
        rm -rf "$colock_mongodb_native"
        mv "$scratch/native" "$colock_mongodb_native"
        say "mongodb_native: ready"
    else
        say "mongodb_native: not built ($(grep . "$log" | tail -n 1)); its tests are skipped"
    fi
}
mongodb_native_is_there() { [ -x "$colock_mongodb_native/bin/secantusd-rs" ]; }
cargo_is_recent() { printf '1.95\n%s\n' "$(cargo --version | cut -d' ' -f2)" | sort -VC; }

# Installs FerretDB, and PostgreSQL with DocumentDB in a Debian of its own: no released Debian contains DocumentDB. Takes
# some minutes, once.
setup_ferretdb() {
    if [ ! -x "$colock_ferretdb/ferretdb" ]; then
        [ "$(id -u)" -eq 0 ] || fail "only root can install ferretdb, because PostgreSQL is installed in a Debian of its own"
        need 'have go' golang-go "Go >= 1.25"
        need 'have debootstrap' debootstrap "debootstrap"
        install_missing
        go_is_recent || fail "ferretdb needs Go >= 1.25; this is $(go env GOVERSION)"
        rm -rf "$colock_ferretdb" "$colock_ferretdb.new"
        mkdir -p "$colock_ferretdb.new"
        build_ferretdb "$colock_ferretdb.new"
        install_documentdb "$colock_ferretdb.new/root"
        mv "$colock_ferretdb.new" "$colock_ferretdb"
    fi
    say "ferretdb: ready"
}
go_is_recent() { printf 'go1.25\n%s\n' "$(go env GOVERSION)" | sort -VC; }

# build_ferretdb FOLDER
build_ferretdb() {
    say "building FerretDB ${colock_ferretdb##*-} into $colock_cache"
    GOBIN=$1 GOFLAGS=-modcacherw GOPATH=$scratch/go GOCACHE=$scratch/go-build \
        go install "github.com/FerretDB/FerretDB/v2/cmd/ferretdb@v${colock_ferretdb##*-}" >"$log" 2>&1 ||
        { cat "$log" >&2; fail "FerretDB could not be built"; }
}

# install_documentdb FOLDER: creates a minimal Debian with PostgreSQL 18 and DocumentDB, and an empty database in its
# /srv/data
install_documentdb() {
    local archive
    say "installing PostgreSQL 18 with DocumentDB into $colock_cache"
    for archive in $(colock_debian_archives); do
        rm -rf "$1"
        debootstrap --variant=minbase sid "$1" "$archive" >"$log" 2>&1 && break
    done
    [ -x "$1/usr/bin/apt-get" ] || { tail -n 5 "$log" >&2; fail "debootstrap could not create a minimal Debian sid"; }
    cp /etc/resolv.conf /etc/hosts "$1/etc/"
    # No package starts a server or creates a database.
    printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
    chmod +x "$1/usr/sbin/policy-rc.d"
    mkdir -p "$1/etc/postgresql-common/createcluster.d"
    echo 'create_main_cluster = false' >"$1/etc/postgresql-common/createcluster.d/colock.conf"
    # Some packages need /proc.
    # shellcheck disable=SC2016 # expanded in the inner shell
    local in_root=(unshare --mount bash -euc 'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"' "$1"
        env -i LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin)
    "${in_root[@]}" apt-get install -y -q --no-install-recommends postgresql-18 postgresql-18-documentdb >"$log" 2>&1 &&
        "${in_root[@]}" apt-get clean || { tail -n 20 "$log" >&2; fail "postgresql-18-documentdb could not be installed from sid"; }

    local postgres=(chroot --userspec=postgres "$1" env -i LANG=C.UTF-8) programs=/usr/lib/postgresql/18/bin
    install -d -m 700 -o "$("${in_root[@]}" id -u postgres)" "$1/srv/data"
    "${postgres[@]}" $programs/initdb -D /srv/data --username=postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 \
        --wal-segsize=1 --no-sync >"$log" 2>&1 || { cat "$log" >&2; fail "initdb has failed"; }
    # Only processes of this machine that may read the data use the socket, which is next to the data. scripts/ferretdb.sh
    # starts PostgreSQL with its data in /mnt.
    printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '/mnt'" "cron.host = '/mnt'" \
        "documentdb.localhost_connection_string = 'host=/mnt'" \
        "cron.database_name = 'postgres'" "shared_preload_libraries = 'pg_cron,pg_documentdb_core,pg_documentdb'" \
        'dynamic_shared_memory_type = sysv' 'fsync = off' 'max_worker_processes = 16' >>"$1/srv/data/postgresql.conf"
    "${postgres[@]}" $programs/postgres --single -D /srv/data postgres >"$log" 2>&1 \
        <<<'CREATE EXTENSION documentdb CASCADE' && ! grep -E 'ERROR|FATAL' "$log" >&2 || fail "DocumentDB could not be created"
}

# Installs other lock libraries, in the versions that benchmarks/peers names, for tests and benchmarks. A library that
# cannot be installed is reported, and its tests are skipped.
setup_peers() {
    mkdir -p "$colock_peers"
    local not_installed=()
    install_peers node "$colock_root/benchmarks/peers/package.json" "node npm" install_node_peers || true
    # The tests can use Debian's own redis-py.
    if ! install_peers python "$colock_root/benchmarks/peers/requirements.txt" python3 install_python_peers &&
        have python3 && [ -n "$debian" ]; then
        need 'python3 -c "import redis"' python3-redis "redis-py"
        install_missing
    fi
    # The ZooKeeper tests use Debian's packages of Curator and kazoo.
    if [ -n "$debian" ]; then
        need '[ -f /usr/share/java/curator-recipes.jar ]' libcurator-recipes-java "Curator"
        need 'have javac' default-jdk-headless "a Java compiler"
        need '/usr/bin/python3 -c "import kazoo"' python3-kazoo "kazoo"
        install_missing
    fi
    if [ ${#not_installed[@]} -gt 0 ]; then
        say "peers: not installed: $(join "${not_installed[@]}"); the tests and benchmarks that need them are skipped"
    else
        say "peers: ready"
    fi
}

# install_peers NAME VERSIONS TOOLS COMMAND...: runs COMMAND unless this list of versions is installed already
install_peers() {
    local stamp=$colock_peers/$1.installed tool
    for tool in $3; do
        if ! have "$tool"; then
            not_installed+=("the $1 libraries (there is no $tool)")
            return 1
        fi
    done
    cmp -s "$stamp" "$2" && return 0
    rm -f "$stamp"
    "${@:4}" >"$colock_peers/$1.log" 2>&1 && cp "$2" "$stamp" && return 0
    not_installed+=("the $1 libraries ($(grep . "$colock_peers/$1.log" | tail -n 1))")
    return 1
}
install_node_peers() {
    cp "$colock_root/benchmarks/peers/package.json" "$colock_peers/" &&
        npm --prefix "$colock_peers" install --no-audit --no-fund
}
install_python_peers() {
    python3 -m venv --clear "$colock_peers/python" &&
        "$colock_peers/python/bin/pip" install -r "$colock_root/benchmarks/peers/requirements.txt"
}

# Installs Prometheus's client library, whose parser reads the metrics in the tests. If it cannot be installed, these
# tests are skipped.
setup_prometheus() {
    [ -f "$colock_prometheus/installed" ] && say "prometheus: ready" && return 0
    if [ -n "$debian" ]; then
        need 'python3 -c "import venv, ensurepip"' python3-venv "Python >= 3.10 with venv"
        install_missing
    fi
    say "installing Prometheus's client library into $colock_prometheus"
    if python3 -m venv --clear "$colock_prometheus" >"$log" 2>&1 &&
        "$colock_prometheus/bin/pip" install "prometheus_client==${colock_prometheus##*-}" >>"$log" 2>&1; then
        touch "$colock_prometheus/installed"
        say "prometheus: ready"
    else
        say "prometheus: not installed ($(grep . "$log" | tail -n 1)); the tests that need it are skipped"
    fi
}

setup_conan() {
    if [ ! -f "$colock_conan/installed" ]; then
        if [ -n "$debian" ]; then
            need 'python3 -c "import venv, ensurepip"' python3-venv "Python >= 3.10 with venv"
            install_missing
        fi
        say "installing Conan into $colock_conan"
        python3 -m venv --clear "$colock_conan" >"$log" 2>&1 &&
            "$colock_conan/bin/pip" install "conan==${colock_conan##*-}" >>"$log" 2>&1 ||
            { cat "$log" >&2; fail "Conan could not be installed"; }
        touch "$colock_conan/installed"
    fi
    say "conan: ready"
}

# Installs Doxygen, Graphviz, and Sphinx in the versions that docs/site/requirements.txt names.
setup_docs() {
    local versions=$colock_root/docs/site/requirements.txt
    need 'have doxygen' doxygen "Doxygen >= 1.9.4"
    need 'have dot' graphviz "Graphviz"
    if [ -n "$debian" ]; then
        need 'python3 -c "import venv, ensurepip"' python3-venv "Python >= 3.11 with venv"
    fi
    install_missing
    if ! cmp -s "$colock_docs/installed" "$versions"; then
        say "installing Sphinx into $colock_docs"
        python3 -m venv --clear "$colock_docs" >"$log" 2>&1 &&
            "$colock_docs/bin/pip" install -r "$versions" >>"$log" 2>&1 ||
            { cat "$log" >&2; fail "Sphinx could not be installed"; }
        cp "$versions" "$colock_docs/installed"
    fi
    say "docs: ready"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log

[ $# -gt 0 ] || set -- build
for part; do
    case $part in
    build | sanitizers | coverage | tidy | format | debootstrap | servers | redis8 | valkey8 | valkey9 | zookeeper | \
        mongodb | mongodb_native | ferretdb | peers | prometheus | conan | docs) ;;
    *) fail "unknown part '$part'; known: build, sanitizers, coverage, tidy, format, debootstrap, servers, redis8, valkey8, valkey9, zookeeper, mongodb, mongodb_native, ferretdb, peers, prometheus, conan, docs" ;;
    esac
done
for part; do "setup_$part"; done

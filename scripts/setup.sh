#!/bin/sh
# Installs what building, the demo and the tests need, then runs make.
#
#   scripts/setup.sh [--developer] [--full] [TARGET...]
#
#   scripts/setup.sh demo      build, and see what the simulator shows
#   scripts/setup.sh test      build, and run the tests
#
# --developer also installs what checks the source: clang, shellcheck, codespell, mandoc.
# --full also installs what the tests in a browser need: chromium, node, npm and, from npm, a driver and a
# checker of accessibility.
#
#   scripts/setup.sh --full test-full      run those tests
#
# The plotting library of `pagesim report` (sim/page/package.json) comes from npm, where there is an npm; without it the
# pages have tables for plots.
# On Debian and its relatives packages come from apt-get, with sudo when not root. Elsewhere the
# script prints what is needed and stops with status 1. Quick when everything is there.
set -eu

# A command, and the package that has it: another provider of the command is as good.
COMMANDS='make:make gcc:gcc gnuplot:gnuplot-nox zstd:zstd gzip:gzip'
DEVELOPER_COMMANDS='clang:clang shellcheck:shellcheck codespell:codespell mandoc:mandoc'
FULL_COMMANDS='chromium:chromium node:nodejs npm:npm'
LIBRARIES='libc6-dev libjemalloc-dev libjansson-dev libarchive-dev libzstd-dev
    zlib1g-dev libmd-dev libxxhash-dev libcmocka-dev'

full=
while :; do
    case "${1:-}" in
    --developer) COMMANDS="$COMMANDS $DEVELOPER_COMMANDS" ;;
    --full) COMMANDS="$COMMANDS $FULL_COMMANDS" full=1 ;;
    *) break ;;
    esac
    shift
done
case "${1:-}" in
-*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
    ;;
esac

cd "$(dirname "$0")/.."

missing=
for pair in $COMMANDS; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done

if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
    echo "setup.sh: this system has no apt-get. Install these, under the names they have here, and" >&2
    echo "run make ${*:-all}:" >&2
    for pair in $COMMANDS; do echo "  the command ${pair%%:*}" >&2; done
    for package in $LIBRARIES; do echo "  the library that Debian calls $package" >&2; done
    exit 1
fi

# shellcheck disable=SC2086 # a list of words
installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' $LIBRARIES 2>/dev/null || :)
for package in $LIBRARIES; do
    case "
$installed
" in
    *"
$package installed
"*) ;;
    *) missing="$missing $package" ;;
    esac
done

if [ -n "$missing" ]; then
    echo "setup.sh: installing$missing"
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "setup.sh: not root, and there is no sudo. As root, run" >&2
            echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
            exit 1
        fi
        as_root=sudo
    fi
    # The variable goes through env, since sudo drops the caller's.
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    # shellcheck disable=SC2086 # a list of words
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
fi

# Packages from npm are fetched once; their versions and checksums stand in package-lock.json.
page=sim/page
if [ -n "$full" ] && [ ! -d $page/node_modules/axe-core ]; then
    npm ci --prefix $page --ignore-scripts --no-audit --no-fund
elif [ ! -d $page/node_modules/uplot ] && command -v npm >/dev/null 2>&1; then
    npm ci --prefix $page --omit=dev --ignore-scripts --no-audit --no-fund ||
        echo "setup.sh: no plotting library; the pages of 'pagesim report' will have tables for plots" >&2
fi

# As many jobs as there are cores.
exec make -j"$(nproc 2>/dev/null || echo 1)" "$@"

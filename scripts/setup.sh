#!/bin/sh
# Installs what building, the demo and the tests need, then runs make.
#
#   scripts/setup.sh [--developer] [TARGET...]
#
#   scripts/setup.sh demo      build, and see what the simulator shows
#   scripts/setup.sh test      build, and run the tests
#
# --developer also installs what checks the source: clang, shellcheck, codespell, mandoc.
# On Debian and its relatives packages come from apt-get, with sudo when not root. Elsewhere the
# script prints what is needed and stops with status 1. Quick when everything is there.
set -eu

# A command, and the package that has it: another provider of the command is as good.
COMMANDS='make:make gcc:gcc gnuplot:gnuplot-nox zstd:zstd gzip:gzip'
DEVELOPER_COMMANDS='clang:clang shellcheck:shellcheck codespell:codespell mandoc:mandoc'
LIBRARIES='libc6-dev libjemalloc-dev libjansson-dev libarchive-dev libzstd-dev
    zlib1g-dev libmd-dev libxxhash-dev libcmocka-dev'

if [ "${1:-}" = --developer ]; then
    COMMANDS="$COMMANDS $DEVELOPER_COMMANDS"
    shift
fi
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

# As many jobs as there are cores.
exec make -j"$(nproc 2>/dev/null || echo 1)" "$@"

#!/bin/sh
# Runs test programs, replays the fuzz corpora, and adds up.
#
#   MODE=release scripts/run_tests.sh PROGRAM...
#
# A program that passes gets one line, one that fails is shown in full. The last line is
# `N passed, N failed, N skipped`. Status 1 when a case failed or none ran.
# PAGESIM_TEST_SECONDS: time limit of one program [600].
set -u

MODE=${MODE:-release}
LIMIT_S=${PAGESIM_TEST_SECONDS:-600}
PAGESIM_BIN=${PAGESIM_BIN:-build/$MODE/pagesim}
export PAGESIM_BIN

logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM HUP

passed=0 failed=0 skipped=0

count_lines() { # PATTERN FILE
    grep -c "$1" "$2" || :
}

# What cmocka's standard output says of each case, checked against its own count: a program that ends early, or
# dies, counts as one failure more.
run_program() {
    timeout -k 10 "$LIMIT_S" "$1" >"$logs/out" 2>"$logs/err"
    status=$?
    ok=$(count_lines '^\[       OK \]' "$logs/out")
    bad=$(count_lines '^\[  FAILED  \]' "$logs/out")
    skips=$(count_lines '^\[  SKIPPED \]' "$logs/out")
    said=$(sed -n 's/^\[==========\] \([0-9]*\) test(s) run\.$/\1/p' "$logs/out" |
        awk '{ n += $1 } END { print n + 0 }')
    name=${1#build/"$MODE"/}
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        echo "$name: took longer than $LIMIT_S s"
    fi
    if [ "$bad" -eq 0 ]; then
        if [ "$status" -ne 0 ] || [ "$said" -ne $((ok + skips)) ] || [ "$said" -eq 0 ]; then
            bad=1
        fi
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skips))
    if [ "$bad" -eq 0 ]; then
        if [ "$skips" -gt 0 ]; then
            echo "ok    $name: $ok passed, $skips skipped"
        else
            echo "ok    $name: $ok passed"
        fi
    else
        echo "FAIL  $name: $bad failed (status $status)"
        grep -v -e '^\[ RUN      \]' -e '^\[       OK \]' "$logs/out"
        cat "$logs/err"
    fi
}

# Each target replays the files of its corpus; one case a target.
run_corpus() {
    name=${1##*/fuzz_}
    name=${name%_replay}
    set -- "$1" "tests/fuzz/corpus/$name"/*
    if [ ! -e "$2" ]; then
        echo "FAIL  fuzz $name: no corpus in tests/fuzz/corpus/$name"
        failed=$((failed + 1))
    elif timeout -k 10 "$LIMIT_S" "$@" >"$logs/out" 2>&1; then
        echo "ok    fuzz $name: $(($# - 1)) files"
        passed=$((passed + 1))
    else
        echo "FAIL  fuzz $name"
        cat "$logs/out"
        failed=$((failed + 1))
    fi
}

for program; do
    run_program "$program"
done
for source in tests/fuzz/fuzz_*.c; do
    [ -e "$source" ] || continue
    program=${source##*/}
    run_corpus "build/$MODE/fuzz/${program%.c}_replay"
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

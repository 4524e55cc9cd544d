# What the scenarios of claims.sh are written with.
# shellcheck shell=sh disable=SC2154 # program, out: of claims.sh

number='' claim='' inputs='' finds='' rule='' verdict=''

# claim NUMBER TEXT
claim() {
    number=$1 claim=$2
    printf '%s  %s\n' "$number" "$claim"
}

# input NAME DEFAULT: sets the shell variable NAME, unless the environment has it. What it holds is printed.
input() {
    eval "[ -n \"\${$1+x}\" ] || $1=\$2"
    eval "inputs=\"\$inputs\${inputs:+, }$1=\$$1\""
}

# sweep NAME ARGUMENT...: the results of a sweep, one line a cell, in $out/NUMBER-NAME.jsonl
sweep() {
    results=$out/$number-$1.jsonl
    shift
    rm -f "$results"
    "$program" sweep "$@" --output "$results" 2>"$results.log" || { cat "$results.log" >&2; return 1; }
    rm -f "$results.log"
}

# plan NAME ARGUMENT...: a memory plan as one JSON object in $out/NUMBER-NAME.jsonl
plan() {
    results=$out/$number-$1.jsonl
    shift
    "$program" plan "$@" --json | tr -d '\n' >"$results"
}

# edge NAME ARGUMENT...: the probability of out of memory against utilization, as CSV in $out/NUMBER-NAME.csv
edge() {
    results=$out/$number-$1.csv
    shift
    "$program" edge "$@" --csv >"$results"
}

# values NAME KEY...: a line a cell, the values of the keys between blanks; null stays null. A key may be a path, a>b.
values() {
    results=$out/$number-$1.jsonl
    shift
    awk -v keys="$*" '
        BEGIN { n = split(keys, key, " ") }
        {
            line = ""
            for (i = 1; i <= n; i++) {
                rest = $0
                parts = split(key[i], part, ">")
                for (p = 1; p <= parts; p++) {
                    at = index(rest, "\"" part[p] "\":")
                    if (!at) { print "claims: no " key[i] " in " FILENAME > "/dev/stderr"; exit 1 }
                    rest = substr(rest, at + length(part[p]) + 3)
                }
                sub(/^ */, "", rest)
                if (rest ~ /^"/) { rest = substr(rest, 2); sub(/".*/, "", rest) } else sub(/[,}\]].*/, "", rest)
                line = line (i > 1 ? " " : "") rest
            }
            print line
        }' "$results"
}

# calc EXPRESSION [FORMAT]: a number
calc() { awk "BEGIN { printf \"${2:-%.10g}\", ($1) }"; }

# holds EXPRESSION
holds() { awk "BEGIN { exit !($1) }"; }

finds() { finds=$1; }
rule() { rule=$1; }
verdict() { verdict=$1; }

closing() {
    [ -n "$finds" ] && [ -n "$verdict" ] && [ -n "$rule" ]
    printf '   inputs:  %s\n   finds:   %s\n   rule:    %s\n   verdict: %s\n\n' "$inputs" "$finds" "$rule" "$verdict"
    printf '| %s | %s | %s | **%s** | %s |\n' "$number" "$claim" "$finds" "$verdict" "$rule" >"$out/$number.row"
}

# Latency against block size by policy, of the requests that finished. Logarithmic; all panels alike.
call ARG0[1:strlen(ARG0) - strlen('latency.gp')].'style.gp' ARG1 ARG2 ARG3 ARG4
height = 660
eval open_terminal
eval read_series
eval read_block_sizes

METRICS = 'ttft_ns.p50 ttft_ns.p99 e2e_ns.p50 e2e_ns.p99'
array NAME[4] = ['first token, median', 'first token, 99th percentile', \
                 'last token, median', 'last token, 99th percentile']
UNIT = 1e9

# Whole decades around all values.
low = 1e300; high = 0
note_y(y) = (low = y > 0 && y < low ? y : low, high = y > high ? y : high, 0)
set table $scratch
do for [m = 1:4] { plot [-1:1][-1:1] CSV using (note_y(number(word(METRICS, m)) / UNIT)):(0) with points }
# Requests that were never served have no latency: a policy that serves few looks fast.
partial = 0
note_partial(requests, finished) = (finished < requests ? (partial = 1) : 0, 0)
plot [-1:1][-1:1] CSV using (note_partial(number('requests'), number('finished'))):(0) with points
unset table
if (high == 0) { low = 0.1; high = 1 }
eval block_size_axis
set logscale y
set yrange [10 ** floor(log10(low) - 0.01):10 ** ceil(log10(high) + 0.01)]

set multiplot
set label 1 TITLE at screen 0.5, 0.975 center
if (partial) {
    set label 2 'finished requests only; some policies did not serve all' at screen 0.5, 0.105 center textcolor rgb 0x8B0000
}
set key off
do for [m = 1:4] {
    row = (m - 1) / 2
    set lmargin at screen 0.10 + ((m - 1) % 2) * 0.46
    set rmargin at screen 0.10 + ((m - 1) % 2) * 0.46 + 0.42
    set bmargin at screen 0.575 - row * 0.385
    set tmargin at screen 0.875 - row * 0.385
    set title NAME[m] offset 0, -0.6
    set xlabel (row == 1 ? 'block size (tokens)' : '') offset 0, 0.4
    set ylabel (m % 2 == 1 ? 'time since arrival (s)' : '') offset 0.8, 0
    set ytics 10 format (m % 2 == 1 ? '%g' : '')
    METRIC = word(METRICS, m)
    eval lines
    unset label
}
legend_top = 0.085
eval legend
unset multiplot

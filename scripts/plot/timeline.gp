# Where the bytes of the pool were over time, stacked, and how many sequences ran: the CSV of run --timeline.
call ARG0[1:strlen(ARG0) - strlen('timeline.gp')].'style.gp' ARG1 ARG2 ARG3 ARG4
height = 560
eval open_terminal

NAMES = 'live dead reserved internal rounding cached cached_pinned stranded free overhead'
array HUES[10] = [BLUE, BLACK, ORANGE, RED, PURPLE, SKY, GREEN, YELLOW, PALE, GREY]
GIB = 1024.0 ** 3
bytes(i) = column(word(NAMES, i).'_bytes')
up_to(n) = n < 1 ? 0 : (sum [i = 1:n] bytes(i)) / GIB
SHOWN = ''
last = 0
note_top(v, t) = (top = v > top ? v : top, last = t > last ? t : last, 0)
do for [i = 1:words(NAMES)] {
    top = 0
    set table $scratch
    plot [-1:1][-1:1] CSV using (note_top(bytes(i), column('time_ns') / 1e9)):(0) with points
    unset table
    if (top > 0) { SHOWN = SHOWN.' '.sprintf('%d', i) }
}
pool = 0
note_pool(v) = (pool = v > pool ? v : pool, 0)
set table $scratch
plot [-1:1][-1:1] CSV using (note_pool(up_to(10))):(0) with points
unset table
shown(n) = int(word(SHOWN, n))

set multiplot
set label 1 TITLE at screen 0.5, screen 0.955 center
set lmargin at screen 0.10
set rmargin at screen 0.97
set xrange [0:(last > 0 ? last : 1)]
set tmargin at screen 0.89
set bmargin at screen 0.44
set yrange [0:(pool > 0 ? pool : 1)]
set format x ''
set ylabel 'KV cache (GiB)' offset 0.5, 0
set style fill solid noborder
set key at screen 0.5, screen 0.015 center bottom horizontal maxrows 2 width 1
plot for [n = 1:words(SHOWN)] CSV using (column('time_ns') / 1e9):(up_to(shown(n) - 1)):(up_to(shown(n))) \
    with filledcurves lc rgb HUES[shown(n)] title word(NAMES, shown(n))
unset label 1
set tmargin at screen 0.40
set bmargin at screen 0.20
set key off
set format x '%g'
set xlabel 'time (s)' offset 0, 0.4
set ylabel 'sequences running'
set yrange [0:*]
plot CSV using (column('time_ns') / 1e9):(column('running')) with lines lc rgb BLUE lw 1.4
unset multiplot

# Prefix-cache hit rate against block size. Where a block is finer than the ids of the trace, sharing inside one id
# cannot be seen: those points are lower bounds, drawn open.
call ARG0[1:strlen(ARG0) - strlen('hit_rate.gp')].'style.gp' ARG1 ARG2 ARG3 ARG4
height = 500
eval open_terminal
eval read_series
eval read_block_sizes

METRIC = 'hit_rate_tokens'
is_bound(note) = strstrt(strcol(note), 'lower bound') == 1
bounds = 0
array HAS[words(SERIES)]
set table $scratch
top = 0
note_hit(v) = (top = v > top ? v : top, bounds = is_bound('hit_rate_note') ? 1 : bounds, 0)
plot [-1:1][-1:1] CSV using (note_hit(number(METRIC))):(0) with points
do for [k = 1:words(SERIES)] {
    has = 0
    note_has(y) = (y == y ? (has = 1) : 0, 0)
    plot [-1:1][-1:1] CSV using (strcol('series') eq word(SERIES, k) ? note_has(field(METRIC)) : 0):(0) with points
    HAS[k] = has
}
unset table
# Only policies that have a hit rate.
KEPT = ''
do for [k = 1:words(SERIES)] { if (HAS[k]) { KEPT = KEPT.' '.sprintf('%d', k) } }
kept(n) = int(word(KEPT, n))

eval block_size_axis
step = top > 0.5 ? 0.1 : top > 0.2 ? 0.05 : top > 0.1 ? 0.02 : 0.01
set yrange [0:step * ceil(top * 1.05 / step + 0.01)]
set ytics step format '%.2f'
set xlabel 'block size (tokens)'
set ylabel 'prompt tokens found in the cache (fraction)'
set label 1 TITLE at screen 0.5, screen 0.955 center
set tmargin at screen 0.88
set bmargin at screen 0.25
set lmargin at screen 0.11
set rmargin at screen 0.97
set key at screen 0.5, screen 0.02 center bottom horizontal maxrows 3 width 1 samplen 3.5

plot for [n = 1:words(KEPT)] CSV using (x_min / 1.25):(level(kept(n), field(METRIC))):(x_max * 1.25 - x_min / 1.25):(0) \
         with vectors nohead lc rgb color(kept(n)) lw 1.6 dt (12, 5), \
     for [n = 1:words(KEPT)] CSV using (column('block_size')):(sized(kept(n), field(METRIC))) \
         with lines lc rgb color(kept(n)) lw 1.6, \
     for [n = 1:words(KEPT)] CSV using (column('block_size')):(is_bound('hit_rate_note') ? NaN : sized(kept(n), field(METRIC))) \
         with points lc rgb color(kept(n)) pt point(kept(n)) ps 1.1, \
     for [n = 1:words(KEPT)] CSV using (column('block_size')):(is_bound('hit_rate_note') ? sized(kept(n), field(METRIC)) : NaN) \
         with points lc rgb 0xFFFFFF pt point(kept(n)) ps 1.1, \
     for [n = 1:words(KEPT)] CSV using (column('block_size')):(is_bound('hit_rate_note') ? sized(kept(n), field(METRIC)) : NaN) \
         with points lc rgb color(kept(n)) pt point(kept(n)) - 1 ps 1.1 lw 1.4, \
     for [n = 1:words(KEPT)] NaN with linespoints lc rgb color(kept(n)) lw 1.6 pt point(kept(n)) ps 1.1 \
         title (is_flat(kept(n)) ? '' : word(SERIES, kept(n))), \
     for [n = 1:words(KEPT)] NaN with lines lc rgb color(kept(n)) lw 1.6 dt 2 \
         title (is_flat(kept(n)) ? word(SERIES, kept(n)) : ''), \
     for [k = 1:(FLATS ne '')] NaN with lines lc rgb 0x444444 lw 1.6 dt 2 title 'dashed: block size does not matter', \
     for [n = 1:bounds] NaN with points lc rgb 0x444444 pt 12 ps 1.1 lw 1.4 title 'open: lower bound (block finer than the ids of the trace)'

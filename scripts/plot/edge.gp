# Probability of the device's out of memory against utilization, from the CSV of `pagesim edge`; bands are Wilson's 95 %
# intervals. A utilization at which the server does not start has no point.
call ARG0[1:strlen(ARG0) - strlen('edge.gp')].'style.gp' ARG1 ARG2 ARG3 ARG4
note_name(name) = (SERIES = strstrt(' '.SERIES.' ', ' '.name.' ') > 0 ? SERIES : SERIES.(strlen(SERIES) > 0 ? ' ' : '').name, 0)
set table $scratch
plot [-1:1][-1:1] CSV using (note_name(strcol('series'))):(0) with points
unset table

rows = words(SERIES)
below = 75 + 17 * rows
height = 330 + below
eval open_terminal

array HUE[9] = [BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, BROWN, OLIVE]
hue(k) = HUE[(k - 1) % 9 + 1]
is(k, name) = strcol('series') eq word(SERIES, k) && strlen(strcol('oom_probability')) > 0 ? column(name) : NaN

set xlabel 'gpu-memory-utilization'
set ylabel 'probability of out of memory'
set format x '%.2f'
set format y '%.1f'
set yrange [0:1]
set offsets graph 0.02, graph 0.02, 0, 0
set label 1 TITLE at screen 0.5, screen 0.955 center
set tmargin at screen 0.92
set bmargin at screen below / (1.0 * height)
set lmargin at screen 0.11
set rmargin at screen 0.95
set key at screen 0.5, screen 0.02 center bottom vertical maxrows rows width 1 samplen 3
set style fill transparent solid 0.2 noborder

plot for [k = 1:words(SERIES)] CSV using (column('gpu_memory_utilization')):(is(k, 'oom_probability_low')):(is(k, 'oom_probability_high')) \
         with filledcurves lc rgb hue(k), \
     for [k = 1:words(SERIES)] CSV using (column('gpu_memory_utilization')):(is(k, 'oom_probability')) with linespoints \
         lc rgb hue(k) lw 1.6 pt 7 ps 0.6 title word(SERIES, k)

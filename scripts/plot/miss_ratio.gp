# Miss-ratio curves from the CSV of `pagesim cache --curve`. Points below the largest request, where requests are
# rejected, stand apart without a line. Lines: of one exact pass; with a dot at each capacity that was simulated; dashed
# where blocks were sampled, with bars of the standard error. A ring marks the knee of the working set.
call ARG0[1:strlen(ARG0) - strlen('miss_ratio.gp')].'style.gp' ARG1 ARG2 ARG3 ARG4
note_name(name) = (SERIES = strstrt(' '.SERIES.' ', ' '.name.' ') > 0 ? SERIES : SERIES.(strlen(SERIES) > 0 ? ' ' : '').name, 0)
is_sampled(k) = strcol('method') eq 'shards' || strcol('method') eq 'mini'
low = 1e300; high = 0
note_ratio(v) = (low = v < low ? v : low, high = v > high ? v : high, 0)
sampled = 0; simulated = 0
set table $scratch
plot [-1:1][-1:1] CSV using (note_name(strcol('series')), note_ratio(column('miss_ratio_blocks')), \
    sampled = is_sampled(0) ? 1 : sampled, \
    simulated = strcol('method') eq 'simulated' && column('apart') == 0 ? 1 : simulated, 0):(0) with points
unset table

# The legend has two columns.
rows = ceil((words(SERIES) + 2 + sampled + simulated) / 2.0)
below = 70 + 17 * rows
height = 350 + below
eval open_terminal

array HUE[9] = [BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, BROWN, OLIVE]
hue(k) = HUE[(k - 1) % 9 + 1]
dash(k) = k > 9 ? 2 : 1
is(k) = strcol('series') eq word(SERIES, k)
on(k) = is(k) && column('apart') == 0 ? column('miss_ratio_blocks') : NaN
counted(k) = is_sampled(k) ? NaN : on(k)
estimated(k) = is_sampled(k) ? on(k) : NaN
dots(k) = strcol('method') eq 'simulated' ? on(k) : NaN
off(k) = is(k) && column('apart') == 1 ? column('miss_ratio_blocks') : NaN
knee(k) = is(k) && column('knee') == 1 ? column('miss_ratio_blocks') : NaN
error_of(k) = column('error') > 0 ? on(k) : NaN

set logscale x 10
set format x '%.0f'
set yrange [(low > 0.1 ? floor((low < 0.95 ? low : 0.95) * 20 + 1e-9) / 20.0 : 0):1]
set format y '%.2f'
set xlabel 'capacity (blocks)'
set ylabel 'blocks that miss (fraction)'
set label 1 TITLE at screen 0.5, screen 0.955 center
set tmargin at screen 0.9
set bmargin at screen below / (1.0 * height)
set lmargin at screen 0.11
set rmargin at screen 0.94
set key at screen 0.5, screen 0.02 center bottom vertical maxrows rows width 1 samplen 3

plot for [k = 1:words(SERIES)] CSV using (column('capacity_blocks')):(counted(k)) with lines lc rgb hue(k) lw 1.6 dt dash(k), \
     for [k = 1:words(SERIES)] CSV using (column('capacity_blocks')):(estimated(k)) with lines lc rgb hue(k) lw 1.2 dt 2, \
     for [k = 1:words(SERIES)] CSV using (column('capacity_blocks')):(dots(k)) with points lc rgb hue(k) pt 7 ps 0.3, \
     for [k = 1:words(SERIES)] CSV using (column('capacity_blocks')):(error_of(k) - column('error')):(0):(2 * column('error')) \
         with vectors nohead lc rgb hue(k) lw 1, \
     for [k = 1:words(SERIES)] CSV using (column('capacity_blocks')):(off(k)) with points lc rgb hue(k) pt 2 ps 0.5, \
     for [k = 1:words(SERIES)] CSV using (column('capacity_blocks')):(knee(k)) with points lc rgb hue(k) pt 6 ps 1.8 lw 1.8, \
     for [k = 1:words(SERIES)] NaN with lines lc rgb hue(k) lw 1.6 dt dash(k) title word(SERIES, k), \
     NaN with points lc rgb 0x444444 pt 6 ps 1.8 lw 1.8 title 'knee of the working set', \
     NaN with points lc rgb 0x444444 pt 2 ps 0.5 title 'below the largest request', \
     for [k = 1:simulated] NaN with linespoints lc rgb 0x444444 lw 1.6 pt 7 ps 0.3 title 'simulated, the rest in one pass', \
     for [k = 1:sampled] NaN with lines lc rgb 0x444444 lw 1.2 dt 2 title 'sampled, bars: standard error'

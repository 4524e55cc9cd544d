# Where the bytes of the pool were, on average over the run: a bar for each policy and a few block sizes.
call ARG0[1:strlen(ARG0) - strlen('states.gp')].'style.gp' ARG1 ARG2 ARG3 ARG4
eval count_bars
height = 190 + 26 * bars
eval open_terminal

NAMES = 'live dead reserved internal rounding cached cached_pinned stranded free overhead'
PARTS = ''
do for [i = 1:words(NAMES)] { PARTS = PARTS.' states.'.word(NAMES, i) }
array HUES[10] = [BLUE, BLACK, ORANGE, RED, PURPLE, SKY, GREEN, YELLOW, PALE, GREY]
eval find_shown
eval bar_axis

set label 1 TITLE at screen 0.5, screen 1 - 22.0 / height center
set lmargin at screen 0.235
set rmargin at screen 0.965
set tmargin at screen 1 - 52.0 / height
set bmargin at screen 118.0 / height
set xrange [0:1]
set xtics 0.1 format '%.1f'
set xlabel 'fraction of the pool, mean over time' offset 0, 0.4
set key at screen 0.5, screen 8.0 / height center bottom horizontal maxrows 2 width 1
eval bar_plot

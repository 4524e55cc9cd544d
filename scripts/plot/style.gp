# Shared by every figure: arguments, terminal, fonts, colours. Each script is called as
#
#   gnuplot -d -c FIGURE.gp CSV OUTPUT [svg|png [TITLE]]
#
# OUTPUT - is standard output. A script may set `width` and `height` (pixels) and does
# `eval open_terminal` before it draws. Colours are those of Okabe and Ito, legible to the colour-blind.

if (ARG1 eq '' || ARG2 eq '') {
    printerr 'usage: gnuplot -d -c FIGURE.gp CSV OUTPUT [svg|png [TITLE]]'
    exit status 2
}
CSV = ARG1
OUTPUT = ARG2
TERMINAL = ARG3 ne '' ? ARG3 : 'svg'
TITLE = ARG4
if (TERMINAL ne 'svg' && TERMINAL ne 'png') {
    printerr 'terminal: found '.TERMINAL.', expected svg or png'
    exit status 2
}

set encoding utf8
set datafile separator comma
set datafile columnheaders
set datafile missing ''

width = 800
height = 500
# noenhanced: names have underscores, which are no subscripts.
open_terminal = 'if (TERMINAL eq "svg") { \
    set terminal svg noenhanced size width, height dynamic font "DejaVu Sans,Verdana,sans-serif,12" background "white" linewidth 1.2 \
} else { \
    set terminal pngcairo noenhanced size width, height font "DejaVu Sans,10" background "white" linewidth 1.2 \
}; if (OUTPUT ne "-") { set output OUTPUT }'

BLACK = 0x000000; ORANGE = 0xE69F00; SKY = 0x56B4E9; GREEN = 0x009E73
YELLOW = 0xF0E442; BLUE = 0x0072B2; RED = 0xD55E00; PURPLE = 0xCC79A7
GREY = 0x999999; PALE = 0xE3E3E3; BROWN = 0x7A4B1E; NAVY = 0x2A2A72; OLIVE = 0x8A8A3A

set border 3 lc rgb 0x444444
set tics nomirror out scale 0.6
set grid ytics lc rgb 0xDDDDDD lt 1 lw 0.6
set key opaque noautotitle

# --- series: the CSV's first column, in order of appearance ---------------------------------
SERIES = ''
FLATS = '' # of them, those that block size does not matter to
note_series(name) = (FLATS = column('flat') == 1 ? FLATS.' '.name.' ' : FLATS, SERIES = strstrt(' '.SERIES.' ', ' '.name.' ') > 0 ? SERIES : \
                     SERIES.(strlen(SERIES) > 0 ? ' ' : '').name, 0)
read_series = 'set table $scratch; plot [-1:1][-1:1] CSV using (note_series(strcol("series"))):(0) with points; unset table'

# The built-in policies look the same in every figure; when there are others, all go by order.
KNOWN = 'static static-paged jemalloc dynamic prefix ideal'
rank_known(name) = sum [k = 1:words(KNOWN)] (word(KNOWN, k) eq name ? k : 0)
all_known(n) = (sum [k = 1:n] (rank_known(word(SERIES, k)) == 0)) == 0
rank(k) = all_known(words(SERIES)) ? rank_known(word(SERIES, k)) : k
array SERIES_COLOR[9] = [RED, ORANGE, PURPLE, SKY, BLUE, GREEN, BLACK, GREY, OLIVE]
array SERIES_POINT[9] = [5, 7, 9, 11, 13, 15, 5, 7, 9]
color(k) = SERIES_COLOR[(rank(k) - 1) % 9 + 1]
point(k) = SERIES_POINT[(rank(k) - 1) % 9 + 1]
# Lines often coincide: wide ones are drawn first, and show on both sides of the narrow.
array SERIES_WIDTH[9] = [3.5, 1.6, 2, 4.5, 1.6, 1.6, 1.6, 1.6, 1.6]
array SERIES_SIZE[9] = [1, 0.6, 0.6, 1, 0.6, 0.6, 0.6, 0.6, 0.6]
width_of(k) = SERIES_WIDTH[(rank(k) - 1) % 9 + 1]
size_of(k) = SERIES_SIZE[(rank(k) - 1) % 9 + 1]
is_flat(k) = strstrt(FLATS, ' '.word(SERIES, k).' ') > 0

# --- block sizes ----------------------------------------------------------------------------
x_min = 1e300; x_max = 0
note_x(x) = (x_min = x < x_min ? x : x_min, x_max = x > x_max ? x : x_max, 0)
read_block_sizes = 'set table $scratch; plot [-1:1][-1:1] CSV using (note_x(column("block_size"))):(0) with points; unset table; \
    x_min = x_min < x_max ? x_min : x_min / 2.0; x_max = x_max > x_min * 2 ? x_max : x_min * 4'
block_size_axis = 'set logscale x 2; set xrange [x_min / 1.25:x_max * 1.25]; set xtics ("1" 1, "4" 4, "16" 16, "64" 64, "256" 256, "1Ki" 1024, "4Ki" 4096, "16Ki" 16384)'

# An empty field is a gap in a line, never a zero. (A missing value would let the line run on.)
field(name) = strcol(name) eq '' ? NaN : column(name)

# Rows of series k that are (flat = 1) or are not (0) independent of block size; others are undefined. A
# flat series is a line from edge to edge.
of(k, flat) = strcol('series') eq word(SERIES, k) && column('flat') == flat
sized(k, y) = of(k, 0) ? y : NaN
level(k, y) = of(k, 1) ? y : NaN

# Rows where an empty field counts as nothing: stacked parts.
number(name) = strcol(name) eq '' ? 0 : column(name)

# --- panels of lines, and a legend of its own below them -------------------------------------
# Draws column METRIC, in units of UNIT, for every series.
lines = 'plot for [k = 1:words(SERIES)] CSV \
        using (x_min / 1.25):(level(k, field(METRIC) / UNIT)):(x_max * 1.25 - x_min / 1.25):(0) \
        with vectors nohead lc rgb color(k) lw width_of(k) dt (12, 5), \
    for [k = 1:words(SERIES)] CSV using (column("block_size")):(sized(k, field(METRIC) / UNIT)) \
        with linespoints lc rgb color(k) lw width_of(k) pt point(k) ps size_of(k)'
legend = 'unset logscale; set xrange [0:1]; set yrange [0:1]; unset border; unset tics; unset title; unset xlabel; unset ylabel; unset grid; unset label; \
    set lmargin at screen 0.02; set rmargin at screen 0.98; set bmargin at screen 0.03; set tmargin at screen legend_top; \
    set key on center center horizontal maxrows 2 width 1 samplen 5; \
    set label 3 (FLATS eq "" ? "" : "dashed: block size does not matter") at screen 0.5, screen 0.018 center textcolor rgb 0x444444; \
    plot for [k = 1:words(SERIES)] NaN with linespoints lc rgb color(k) lw width_of(k) pt point(k) ps size_of(k) \
             title (is_flat(k) ? "" : word(SERIES, k)), \
        for [k = 1:words(SERIES)] NaN with lines lc rgb color(k) lw width_of(k) dt 2 \
             title (is_flat(k) ? word(SERIES, k) : "")'
legend_top = 0.105

# --- horizontal stacked bars: column `bar` is a row's place, from 1 at the top; 0: not shown ---
bars = 0
note_bar(place) = (bars = place > bars ? place : bars, 0)
count_bars = 'set table $scratch; plot [-1:1][-1:1] CSV using (note_bar(column("bar"))):(0) with points; unset table'
bar_name(size) = (strcol('series').(column('flat') == 1 ? '' : sprintf(', block %d', size)))[1:LABELS * 1000]
at(y) = column('bar') > 0 ? y - column('bar') : NaN
# PARTS: columns, the first at the left. NAMES: what the legend calls them. HUES: their colours. SHOWN: those that
# are above 0 in a bar, so that the legend has no others; extent: the longest bar.
sum_to(n) = n < 1 ? 0 : (sum [i = 1:n] number(word(PARTS, i)))
top = 0
note_top(v) = (top = column('bar') > 0 && v > top ? v : top, 0)
find_shown = 'SHOWN = ""; do for [i = 1:words(PARTS)] { top = 0; set table $scratch; \
    plot [-1:1][-1:1] CSV using (note_top(number(word(PARTS, i)))):(0) with points; unset table; \
    if (top > 0) { SHOWN = SHOWN." ".sprintf("%d", i) } }; \
    if (SHOWN eq "") { SHOWN = "1" }; top = 0; set table $scratch; plot [-1:1][-1:1] CSV using (note_top(sum_to(words(PARTS)))):(0) with points; unset table; extent = top'
LABELS = 1
bar_axis = 'set yrange [-bars - 0.6:-0.4]; unset grid; set grid xtics lc rgb 0xDDDDDD lt 1 lw 0.6; set border 1; \
    set ytics scale 0; set style fill solid border rgb 0xFFFFFF'
# Names at the left if LABELS. Needs a range of x; the left edge of part i is the sum of those before it.
bar_plot = 'plot CSV using (0):(column("bar") > 0 ? at(0) : 1e6):ytic(bar_name(column("block_size"))) with dots lc rgb 0xFFFFFF, \
    for [n = 1:words(SHOWN)] CSV using (sum_to(word(SHOWN, n) - 1)):(at(0)):(sum_to(word(SHOWN, n) - 1)):(sum_to(word(SHOWN, n) + 0)):(at(-0.38)):(at(0.38)) \
    with boxxyerror lc rgb HUES[int(word(SHOWN, n))] title word(NAMES, int(word(SHOWN, n)))'
# A step of 1, 2 or 5 times a power of ten that puts 2 to 6 tics below `extent`.
decade(x) = 10 ** floor(log10(x / 2.0))
step_for(x) = x <= 0 ? 1 : x / decade(x) > 12 ? 5 * decade(x) : x / decade(x) > 5 ? 2 * decade(x) : decade(x)

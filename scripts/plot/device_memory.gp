# The memory picture: what every address was, operation by operation. The CSV of `pagesim device replay --picture`. Segments stand
# side by side in address order; white is memory that the allocator did not hold.
call ARG0[1:strlen(ARG0) - strlen('device_memory.gp')].'style.gp' ARG1 ARG2 ARG3 ARG4
width = 1000
height = 620
eval open_terminal

STATES = 'live free private_live private_free'
NAMES = '"handed out" "free, held by the allocator" "handed out, private pool" "free, private pool"'
array HUES[4] = [BLUE, ORANGE, NAVY, YELLOW]

last = 1
high = 1
note(x, y) = (last = x > last ? x : last, high = y > high ? y : high, 0)
set table $scratch
plot [-1:1][-1:1] CSV using (note(column('end_op'), column('high_mib'))):(0) with points
unset table

# MiB on small pictures, GiB on large ones.
GIB = high > 4096
unit = GIB ? 1024.0 : 1.0
is(k) = strcol('state') eq word(STATES, k)

set xrange [0:last]
set yrange [0:high / unit]
set xlabel 'operation' offset 0, 0.4
set ylabel GIB ? 'address (GiB of what was ever a segment)' : 'address (MiB of what was ever a segment)' offset 0.5, 0
set label 1 TITLE at screen 0.5, screen 0.965 center
set lmargin at screen 0.09
set rmargin at screen 0.98
set tmargin at screen 0.92
set bmargin at screen 0.17
set grid noxtics noytics
set key at screen 0.5, screen 0.02 center bottom horizontal maxrows 1 width 1
# A thin edge shows block from block without hiding blocks of a pixel.
set style fill solid 1.0 border rgb 0xFFFFFF
edge = 0.15

array SHOWN[4]
do for [k = 1:4] {
    seen = 0
    note_state(v) = (seen = v ? 1 : seen, 0)
    set table $scratch
    plot [-1:1][-1:1] CSV using (note_state(is(k))):(0) with points
    unset table
    SHOWN[k] = seen
}
plot for [k = 1:4] CSV using (is(k) ? column('begin_op') : NaN):(column('low_mib') / unit): \
        (column('begin_op')):(column('end_op')):(column('low_mib') / unit):(column('high_mib') / unit) \
        with boxxyerror lc rgb HUES[k] lw edge notitle, \
     for [k = 1:4] NaN with boxes lc rgb HUES[k] title SHOWN[k] ? word(NAMES, k) : ''

# Refused allocations by class (left) and by primary cause (right), in episodes; the same bars as states.gp.
call ARG0[1:strlen(ARG0) - strlen('refusals.gp')].'style.gp' ARG1 ARG2 ARG3 ARG4
eval count_bars
height = 240 + 26 * bars
eval open_terminal
eval bar_axis

# A policy that can never serve a request does not refuse it either: no bar, but no success.
never(text) = column('bar') > 0 && number('unservable') > 0 ? sprintf(text, number('unservable'), number('requests')) : ''
unserved = 0
note_never(n) = (unserved = column('bar') > 0 && n > 0 ? 1 : unserved, 0)
set table $scratch
plot [-1:1][-1:1] CSV using (note_never(number('unservable'))):(0) with points
unset table
never_served = ', CSV using (sum_to(3)):(at(0)):(never("%.0f of %.0f never fit")) with labels left offset 0.5, 0'
array LABEL[2] = ['by class', 'by primary cause']
set multiplot
set label 1 TITLE at screen 0.5, screen 1 - 22.0 / height center
set tmargin at screen 1 - 80.0 / height
set bmargin at screen 140.0 / height
do for [panel = 1:2] {
    if (panel == 1) {
        NAMES = 'despite_free despite_unused capacity'
        GROUP = 'refusals.by_class.'
        array HUES[3] = [RED, ORANGE, BLUE]
    } else {
        NAMES = 'contiguity request_rounding stranded_page idle_mapped group_mismatch watermark '. \
                'over_reservation granularity pinned pool_boundary capacity reservation internal'
        GROUP = 'refusals.by_cause.'
        array HUES[13] = [RED, PURPLE, BROWN, NAVY, OLIVE, GREEN, ORANGE, SKY, PALE, BLACK, BLUE, YELLOW, GREY]
    }
    LABELS = panel == 1
    PARTS = ''
    do for [i = 1:words(NAMES)] { PARTS = PARTS.' '.GROUP.word(NAMES, i) }
    eval find_shown
    set lmargin at screen (panel == 1 ? 0.225 : 0.635)
    set rmargin at screen (panel == 1 ? 0.595 : 0.985)
    set title LABEL[panel] offset 0, -0.6
    room = panel == 1 && unserved ? 1.75 : 1.05
    set xrange [0:(extent > 0 ? extent * room : 1)]
    set xtics 0, step_for(extent * room) format '%.0f'
    set xlabel 'refusals (episodes)' offset 0, 0.4
    set key at screen (panel == 1 ? 0.15 : 0.64), screen 8.0 / height center bottom vertical maxrows 5 width 1
    if (panel == 1) { eval bar_plot.never_served } else { eval bar_plot }
    unset label 1
}
unset multiplot

# Refused allocations by class (left) and by primary cause (right), in episodes; the same bars as states.gp.
call ARG0[1:strlen(ARG0) - strlen('refusals.gp')].'style.gp' ARG1 ARG2 ARG3 ARG4
eval count_bars
height = 240 + 26 * bars
eval open_terminal
eval bar_axis

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
        array HUES[13] = [RED, PURPLE, BROWN, NAVY, OLIVE, GREEN, ORANGE, SKY, GREY, BLACK, BLUE, YELLOW, PALE]
    }
    PARTS = ''
    do for [i = 1:words(NAMES)] { PARTS = PARTS.' '.GROUP.word(NAMES, i) }
    eval find_shown
    set lmargin at screen (panel == 1 ? 0.225 : 0.625)
    set rmargin at screen (panel == 1 ? 0.585 : 0.985)
    set title LABEL[panel] offset 0, -0.6
    set xrange [0:(extent > 0 ? extent * 1.05 : 1)]
    set xtics auto format '%g'
    set xtics (extent > 0 ? 10 ** floor(log10(extent)) : 1)
    set xlabel 'refusals (episodes)' offset 0, 0.4
    set key at screen (panel == 1 ? 0.405 : 0.8), screen 8.0 / height center bottom vertical maxrows 4 width 1
    eval bar_plot
    unset label 1
}
unset multiplot

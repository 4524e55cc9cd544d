# Fragmentation against block size by policy: fractions of the memory in use, and of the free memory.
call ARG0[1:strlen(ARG0) - strlen('fragmentation.gp')].'style.gp' ARG1 ARG2 ARG3 ARG4
height = 660
eval open_terminal
eval read_series
eval read_block_sizes
eval block_size_axis

METRICS = 'internal_fragmentation reservation_waste external_fragmentation'
array NAME[3] = ['internal: never filled / held', 'reserved: filled later / held', 'external: unobtainable / free']
UNIT = 1

set multiplot
set label 1 TITLE at screen 0.5, 0.975 center
set key off
do for [row = 1:2] {
    do for [m = 1:3] {
        set lmargin at screen 0.10 + (m - 1) * 0.30
        set rmargin at screen 0.10 + (m - 1) * 0.30 + 0.28
        set bmargin at screen (row == 1 ? 0.575 : 0.185)
        set tmargin at screen (row == 1 ? 0.875 : 0.505)
        set title (row == 1 ? NAME[m] : '') offset 0, -0.6
        set xlabel (row == 2 ? 'block size (tokens)' : '') offset 0, 0.4
        set ylabel (m > 1 ? '' : row == 1 ? 'fraction' : 'fraction, log scale (0 not drawn)') offset 0.8, 0
        if (row == 1) {
            unset logscale y
            set yrange [0:1]
            set ytics 0.2 format (m == 1 ? '%.1f' : '')
        } else {
            set logscale y
            set yrange [1e-6:1]
            set ytics 10 format ''
            if (m == 1) { set ytics ('1e-6' 1e-6, '1e-5' 1e-5, '1e-4' 1e-4, '0.001' 1e-3, '0.01' 1e-2, '0.1' 1e-1, '1' 1) }
        }
        METRIC = word(METRICS, m)
        eval lines
        unset label 1
    }
}
eval legend
unset multiplot

# What a block size costs the allocator and the kernel.   gnuplot -c calls.gp FOLDER OUTPUT
set terminal svg size 900,420 font "Sans,13" background "white"
set output ARG2
set logscale x 2
set xrange [0.8:640]
set xtics ("1" 1, "2" 2, "4" 4, "8" 8, "16" 16, "32" 32, "64" 64, "128" 128, "256" 256, "512" 512)
set xlabel "block size (tokens)"
set grid ytics lt 1 lc rgb "#dddddd"
set border 3
set tics nomirror
set multiplot layout 1,2
set title "blocks taken per 1,000 computed tokens"
set logscale y
set key top right
plot ARG1."/chats.rows" using 1:5 with linespoints lw 2 pt 7 ps 0.5 lc rgb "#D55E00" title "short chats", \
     ARG1."/agents.rows" using 1:5 with linespoints lw 2 pt 5 ps 0.5 lc rgb "#0072B2" title "agents", \
     ARG1."/documents.rows" using 1:5 with linespoints lw 2 pt 9 ps 0.6 lc rgb "#009E73" title "long documents"
unset logscale y
set title "decode attention, measured on an H200 (GB/s)"
set yrange [0:5000]
set key bottom right
plot ARG1."/kernel.rows" using 1:2 with linespoints lw 2 pt 7 ps 0.5 lc rgb "#0072B2" title "16-bit KV", \
     ARG1."/kernel.rows" using 1:3 with linespoints lw 2 pt 5 ps 0.5 lc rgb "#D55E00" title "FP8 KV"
unset multiplot

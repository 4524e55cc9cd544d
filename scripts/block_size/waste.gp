# What a block size wastes and loses, three loads.   gnuplot -c waste.gp FOLDER OUTPUT
set terminal svg size 900,420 font "Sans,13" background "white"
set output ARG2
set logscale x 2
set xrange [0.8:640]
set xtics ("1" 1, "2" 2, "4" 4, "8" 8, "16" 16, "32" 32, "64" 64, "128" 128, "256" 256, "512" 512)
set xlabel "block size (tokens)"
set yrange [0:*]
set grid ytics lt 1 lc rgb "#dddddd"
set border 3
set tics nomirror
set key top left
set multiplot layout 1,2
set title "held, but empty (% of what is held)"
plot ARG1."/chats.rows" using 1:2 with linespoints lw 2 pt 7 ps 0.5 lc rgb "#D55E00" title "short chats", \
     ARG1."/agents.rows" using 1:2 with linespoints lw 2 pt 5 ps 0.5 lc rgb "#0072B2" title "agents", \
     ARG1."/documents.rows" using 1:2 with linespoints lw 2 pt 9 ps 0.6 lc rgb "#009E73" title "long documents"
set title "hits lost to granularity (% of prompt tokens)"
plot ARG1."/chats.rows" using 1:4 with linespoints lw 2 pt 7 ps 0.5 lc rgb "#D55E00" title "short chats", \
     ARG1."/agents.rows" using 1:4 with linespoints lw 2 pt 5 ps 0.5 lc rgb "#0072B2" title "agents", \
     ARG1."/documents.rows" using 1:4 with linespoints lw 2 pt 9 ps 0.6 lc rgb "#009E73" title "long documents"
unset multiplot

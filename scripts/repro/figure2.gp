# Fig. 2 of the PagedAttention paper, published beside simulated.
#   gnuplot -c figure2.gp CSV OUTPUT svg|png
if (ARGC != 3) { printerr "usage: figure2.gp CSV OUTPUT svg|png"; exit status 2 }
if (ARG3 eq "svg") set terminal svg size 800,480 font "Sans,14" background "white"
if (ARG3 eq "png") set terminal pngcairo size 1600,960 font "Sans,14" fontscale 1.8 linewidth 2
set output ARG2
set datafile separator ","
set datafile missing ""
set style fill solid 1.0 border rgb "#404040"
set boxwidth 0.36
set yrange [0:109]
set xrange [-0.6:3.6]
set ylabel "share of KV memory (%)"
set grid ytics lt 1 lc rgb "#dddddd"
set key outside bottom center horizontal maxrows 1 samplen 1.2 width -1
set title "Left: published (SOSP 2023, Fig. 2), right: simulated; number: batch"
set xtics ("Orca (Max)" 0, "Orca (Pow2)" 1, "Orca (Oracle)" 2, "vLLM" 3) scale 0
set border 3
set tics nomirror

# Sums of the columns up to the i-th part; what was not published counts as nothing.
part(i) = valid(3 + i) ? column(3 + i) : 0
top(i) = i == 0 ? 0 : top(i - 1) + part(i)
colour(i) = i == 1 ? "#009E73" : i == 2 ? "#56B4E9" : i == 3 ? "#E69F00" : "#BBBBBB"
name(i) = i == 1 ? "token states" : i == 2 ? "reservation" : i == 3 ? "internal" : "external, others"
# The tallest sum first: each lower part is drawn over it.
plot for [i = 4:1:-1] ARG1 skip 1 using 1:(top(i)) with boxes lc rgb colour(i) title name(i), \
     ARG1 skip 1 using 1:(top(4) + 3.5):(sprintf("%.2f", column(8))) with labels tc rgb "#202020" notitle

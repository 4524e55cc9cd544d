# shellcheck shell=sh disable=SC2153,SC2154
claim 13 'static FP8 scaling is 15 to 20 % faster than dynamic'
# What finding the scales at run time adds to each layer of a step, in microseconds: to be measured on the kernels in use.
input DYNAMIC_US_PER_LAYER ''
input LAYERS 32

sweep decode --trace 'gen:requests=64,arrivals=none,prompt-tokens=1,output-tokens=500' --max-num-seqs 64 --pool-tokens 100000 --step-time-dtypes fp8-fp8
step=$(calc "$(values decode tpot_ns.p50) / 1000")
needed=$(calc "0.15 * $step / $LAYERS" %.1f)
rule 'not known while the cost of dynamic scaling is not given; with it, true when a decode step of 64 sequences becomes 15 to 20 % longer, else false'
if [ -z "$DYNAMIC_US_PER_LAYER" ]; then
    finds "the step-time models know the type of the weights, not how scales are found; the measured FP8 steps scaled statically. A decode step of 64 sequences takes $(calc "$step" %.0f) us: \
dynamic scaling would have to add $needed us to each layer"
    verdict 'not known: the simulator has no model of it'
else
    slower=$(calc "$LAYERS * $DYNAMIC_US_PER_LAYER / $step")
    finds "a decode step of 64 sequences takes $(calc "$step" %.0f) us; $DYNAMIC_US_PER_LAYER us a layer make it $(calc "100 * $slower" %.1f) % longer"
    if holds "$slower >= 0.15 && $slower <= 0.20"; then verdict true; else verdict false; fi
fi

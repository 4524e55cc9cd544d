# shellcheck shell=sh disable=SC2153,SC2154
claim 9 'utilization 0.90 to 0.92 is safe, 0.95 fails at start-up, 0.98 to 0.99 brings out of memory'
# MODEL:GPU:ENGINE; vllm counts CUDA graphs inside the share, vllm-v0 outside.
input SERVERS 'llama-3-8b:rtx-4090:vllm llama-3-8b:rtx-4090:vllm-v0 llama-3-8b:a100-40gb:vllm-v0 llama-3-8b:h100-sxm:vllm'
# What else holds memory when the server starts, and what libraries take late.
input LATE 'uniform:0:228MiB'
input ACTIVATION 'lognormal:1:0.1'
input OPTIONS ''

for server in $SERVERS; do
    gpu=${server#*:} gpu=${gpu%:*}
    # shellcheck disable=SC2086 # words
    edge "$gpu-${server##*:}" --model "${server%%:*}" --gpu "$gpu" --engine "${server##*:}" --gpu-memory-utilization 0.90,0.92,0.94,0.95,0.96,0.97,0.98,0.99 \
        --late-spread "$LATE" --activation-spread "$ACTIVATION" $OPTIONS
    awk -F, -v s="$server" 'NR > 1 { print s, $2, $3 == "" ? "refused" : $3 }' "$out/$number-$gpu-${server##*:}.csv"
done >"$out/9.cells"

servers=$(echo "$SERVERS" | wc -w)
at() { awk -v u="$1" '$2 == u { print $3 }' "$out/9.cells"; }
safe=$(printf '%s\n%s\n' "$(at 0.9)" "$(at 0.92)" | awk '$1 != "refused" && $1 <= 0.01 { n++ } END { print n + 0 }')
fails=$(at 0.95 | grep -c refused || :)
ooms=$(at 0.99 | awk '$1 != "refused" && $1 >= 0.5 { n++ } END { print n + 0 }')
finds "$(awk '{ if ($1 != last) { printf "%s%s:", (NR > 1 ? "; " : ""), $1; last = $1 } printf " %s at %s", ($3 == "refused" ? "refused" : sprintf("%.0f %%", 100 * $3)), $2 }' "$out/9.cells") \
(probability of out of memory in service)"
rule 'three parts, counted over the servers: at most 1 % at 0.90 and 0.92; refused at 0.95; at least 50 % at 0.99. True when all hold everywhere, false when none does anywhere, else it depends'
if [ "$safe" -eq $((2 * servers)) ] && [ "$fails" -eq "$servers" ] && [ "$ooms" -eq "$servers" ]; then verdict true
elif [ $((safe + fails + ooms)) -eq 0 ]; then verdict false
else verdict "depends on the device: safe at 0.90 and 0.92 in $safe of $((2 * servers)), refused at 0.95 in $fails of $servers, out of memory at 0.99 in $ooms of $servers"; fi

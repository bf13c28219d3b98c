trap 'echo "usr1"' USR1
for i in 1 2 3 4; do (sleep 0.0$i; exit $i) & pids="$pids $!"; done
for p in $pids; do wait $p; echo "job $?"; done
kill -USR1 $$
sleep 5 & kill $!; wait $!; echo "killed $?"
coproc cat
echo through >&${COPROC[1]}
read -r line <&${COPROC[0]}
echo "$line"
exec {COPROC[1]}>&-
wait
mkfifo g; read -t 0.1 x <>g || echo "read timed out"
a=(); for i in {1..500}; do a+=($((i * 7 % 13))); done
echo "${#a[@]} ${a[*]:0:10}"
mkfifo f; (echo fifo > f) & cat f; wait
trap 'echo done' EXIT
echo leaving

# A tree of processes: pipelines, a subshell, a job in the background.
tr ' ' '\n' <"$1" | sort | uniq -c | sort -rn | head -n 5
( gzip -1 -c "$1" | gzip -dc | md5sum ) &
n=0
while read -r word _; do
  n=$((n + ${#word}))
done < <(head -n 40 "$1")
wait
echo "$n letters, $(wc -l <"$1") lines"

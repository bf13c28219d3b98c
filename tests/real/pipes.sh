tr ' ' '\n' < $IN/small | sort | uniq -c | sort -k1,1nr -k2 | head -20
for i in 1 2 3 4 5; do echo $((i * i)); done | while read x; do echo "got $x"; done
n=$(seq 1 2000 | awk '{s += $1} END {print s}')
echo "sum $n"
diff <(seq 1 10) <(seq 1 10) && echo same
cat <<'X' | sed 's/a/b/g' | tee copy
banana
X
cat copy
(exit 4); echo "status $?"
yes | head -1
sh -c 'kill -TERM $$'; echo "killed $?"
head -c 100000 $IN/text | md5sum | cut -d' ' -f1
echo done

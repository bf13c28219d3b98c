seq 1 1000 | awk '{s += $1} END {print s}'
for i in 1 2 3; do echo "line $i"; done | sort -r | sed 's/line/row/'
ls $IN/tree | wc -l
gzip -c $IN/small | gunzip -c | cmp - $IN/small && echo same
find $IN/tree -type f | wc -l
(exit 7); echo $?
echo done

# Words, some more frequent than others, the same at each run: awk -v lines=N -f text.awk
BEGIN {
  split("the of a in replica leader follower ring record digest lock turn tick vote seat", word, " ")
  s = 42
  for (i = 0; i < lines; i++) {
    line = ""
    for (j = 0; j < 9; j++) {
      s = s * 16807 % 2147483647
      line = line (j ? " " : "") (s % 3 ? word[1 + s % 225 % 15] : sprintf("%x", s))
    }
    print line
  }
}

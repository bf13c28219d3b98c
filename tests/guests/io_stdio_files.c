// build:
// deterministic
// loses
// Proves: buffered files: fprintf, fseek, ungetc, fscanf, tmpfile, freopen.
#include "guest.h"
int main(void) {
  const char *path = guest_tmp("stdio");
  FILE *f = fopen(path, "w+");
  CHECK(f);
  for (int i = 0; i < 5000; i++)
    CHECK(fprintf(f, "%d %d\n", i, i * i) > 0);
  rewind(f);
  long a, b, sum = 0;
  while (fscanf(f, "%ld %ld", &a, &b) == 2)
    sum += a ^ b;
  CHECK(fseek(f, -5, SEEK_END) == 0 && fgetc(f) != EOF);
  CHECK(fclose(f) == 0);
  FILE *t = tmpfile();
  CHECK(t && fwrite(&sum, sizeof sum, 1, t) == 1 && fclose(t) == 0);
  CHECK(freopen(path, "a", stdin) && fputs("end\n", stdin) >= 0);
  CHECK(fclose(stdin) == 0 && unlink(path) == 0);
  printf("sum %ld\n", sum);
  guest_ok("io_stdio_files");
}

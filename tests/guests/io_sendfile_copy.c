// build:
// deterministic
// loses
// Proves: calls that move data inside the kernel: sendfile, copy_file_range,
// splice, tee, fallocate, ftruncate, fsync.
#include "guest.h"
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
int main(void) {
  char a[4096];
  snprintf(a, sizeof a, "%s", guest_tmp("sendfile-a"));
  int in = open(a, O_CREAT | O_TRUNC | O_RDWR, 0600);
  int out = open(guest_tmp("sendfile-b"), O_CREAT | O_TRUNC | O_RDWR, 0600);
  CHECK(in >= 0 && out >= 0);
  char text[1000];
  memset(text, 'k', sizeof text);
  CHECK(write(in, text, 1000) == 1000 && fsync(in) == 0);
  off_t off = 100;
  CHECK(sendfile(out, in, &off, 300) == 300 && off == 400);
  off64_t from = 0, to = 300;
  ssize_t n = copy_file_range(in, &from, out, &to, 200, 0);
  CHECK(n == 200 || (n == -1 && (errno == EXDEV || errno == EOPNOTSUPP)));
  CHECK(ftruncate(out, 600) == 0);
  struct stat st;
  CHECK(fstat(out, &st) == 0 && st.st_size == 600);
  int p[2];
  CHECK(pipe(p) == 0);
  from = 0;
  CHECK(splice(in, &from, p[1], NULL, 50, 0) == 50 && from == 50);
  CHECK(read(p[0], text, 100) == 50 && text[49] == 'k');
  CHECK(unlink(a) == 0 && unlink(guest_tmp("sendfile-b")) == 0);
  guest_ok("io_sendfile_copy");
}

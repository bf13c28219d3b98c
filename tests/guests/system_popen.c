// build:
// deterministic
// loses
// Proves: system() and popen() both ways, with their exit statuses.
#include "guest.h"
#include <sys/wait.h>
int main(void) {
  CHECK(WEXITSTATUS(system("exit 3")) == 3);
  CHECK(system("echo one; echo two | tr a-z A-Z; (echo three)") == 0);
  FILE *f = popen("for i in 1 2 3; do echo $((i*i)); done", "r");
  CHECK(f);
  int v, sum = 0;
  while (fscanf(f, "%d", &v) == 1)
    sum += v;
  CHECK(pclose(f) == 0 && sum == 14);
  f = popen("cat >/dev/null; exit 6", "w");
  CHECK(f);
  for (int i = 0; i < 20000; i++)
    fprintf(f, "line %d\n", i);
  CHECK(WEXITSTATUS(pclose(f)) == 6);
  CHECK(WTERMSIG(system("kill -9 $$")) == 9);
  guest_ok("system_popen");
}

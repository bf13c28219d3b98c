// build: -ldl
// not in code: it is linked for a fixed address, which is said
// not in data: it is linked for a fixed address, which is said
// deterministic
// loses
// Proves: a library built a moment ago, never seen before, with a raw syscall
// instruction and a constructor, runs from dlopen in two threads.
#include "guest.h"
#include <dlfcn.h>
#include <pthread.h>
static const char *source =
    "#include <pthread.h>\n"
    "static __thread int t;\nstatic long n;static int made;\n"
    "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n"
    "__attribute__((constructor)) static void c(void) { made = 1; }\n"
    "long work(void) { long r; for (int i = 0; i < 1000; i++) {\n"
    " __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(39) : \"rcx\", \"r11\", \"memory\");\n"
    " pthread_mutex_lock(&m); t++; pthread_mutex_unlock(&m);\n"
    " __atomic_fetch_add(&n, 1, 5); }\n"
    " return made && t == 1000 ? r : -1; }\n"
    "long total(void) { return __atomic_fetch_add(&n, 0, 5); }\n";
static long (*work)(void);
static void *body(void *arg) {
  CHECK(work() == getpid());
  return arg;
}
int main(void) {
  char c[4200], so[4200], command[9000];
  snprintf(c, sizeof c, "%s", guest_tmp("lib.c"));
  snprintf(so, sizeof so, "%s", guest_tmp("lib.so"));
  FILE *f = fopen(c, "w");
  CHECK(f && fputs(source, f) >= 0 && fclose(f) == 0);
  snprintf(command, sizeof command, "gcc -O2 -shared -fPIC -pthread -o %s %s", so, c);
  CHECK(system(command) == 0);
  void *l = dlopen(so, RTLD_NOW);
  CHECK(l);
  work = (long (*)(void))dlsym(l, "work");
  long (*total)(void) = (long (*)(void))dlsym(l, "total");
  CHECK(work && total);
  pthread_t t[2];
  for (int i = 0; i < 2; i++)
    CHECK(!pthread_create(&t[i], NULL, body, NULL));
  for (int i = 0; i < 2; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(total() == 2000);
  CHECK(dlclose(l) == 0 && unlink(c) == 0 && unlink(so) == 0);
  guest_ok("dlopen_built");
}

// build:
// loses
// Proves: the auxiliary vector follows the environment's NULL as the ABI says, and is the same there, in
// getauxval and in /proc/self/auxv, without the vDSO. (Two zero words lay between them, so that programs
// that walk there, dynamic Go ones, read the kernel's own and used the vDSO.)
#include "guest.h"
#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
extern char **environ;
int main(void) {
  char **e = environ;
  while (*e)
    e++;
  Elf64_auxv_t *v = (Elf64_auxv_t *)(e + 1), file[64];
  int fd = open("/proc/self/auxv", O_RDONLY);
  CHECK(fd >= 0);
  long got = read(fd, file, sizeof file);
  CHECK(got > 0 && got % sizeof file[0] == 0);
  int walked = 0, seen = 0, in_file = 0, vdso = 0;
  for (; v->a_type != AT_NULL; v++) {
    walked++;
    if (v->a_type == AT_IGNORE)
      continue;
    vdso |= v->a_type == AT_SYSINFO_EHDR;
    seen++;
    // (The library has an idea of its own of that one.)
    CHECK(v->a_type == AT_HWCAP || getauxval(v->a_type) == v->a_un.a_val);
    int there = 0;
    for (unsigned i = 0; i < got / sizeof file[0]; i++)
      there |= file[i].a_type == v->a_type && file[i].a_un.a_val == v->a_un.a_val;
    CHECK(there);
  }
  for (unsigned i = 0; i < got / sizeof file[0] && file[i].a_type != AT_NULL; i++) {
    vdso |= 2 * (file[i].a_type == AT_SYSINFO_EHDR);
    in_file += file[i].a_type != AT_IGNORE;
  }
  CHECK(seen > 10 && seen == in_file && walked <= seen + 3);
  // Both show it (natively), or none does.
  CHECK(vdso == 0 || vdso == 3);
  CHECK((getauxval(AT_SYSINFO_EHDR) != 0) == (vdso != 0));
  if (getenv("GERYON_HIDES"))
    CHECK(vdso == 0);
  guest_ok("auxv_agrees");
}

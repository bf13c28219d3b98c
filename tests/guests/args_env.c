// build:
// args: one "" two\x20words --flag=%d
// env: GUEST_ENV=a=b\x20c
// deterministic
// loses
// Proves: arguments (also empty ones) and environment arrive unchanged.
#include "guest.h"
int main(int argc, char **argv) {
  printf("argc %d\n", argc);
  for (int i = 1; i < argc; i++)
    printf("arg %d <%s>\n", i, argv[i]);
  CHECK(argv[argc] == NULL);
  CHECK(argc == 5 && argv[2][0] == 0 && !strcmp(argv[3], "two words"));
  const char *e = getenv("GUEST_ENV");
  CHECK(e && !strcmp(e, "a=b c"));
  setenv("GUEST_ENV", "changed", 1);
  CHECK(!strcmp(getenv("GUEST_ENV"), "changed"));
  guest_ok("args_env");
}

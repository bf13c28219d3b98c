// What is printed: each call with its arguments, its result, and a digest of the memory that it could have changed.
#include "calls.h"
#include <stdarg.h>
#include <sys/uio.h>

void flush(void) {
  for (size_t at = 0; at < me->used;) {
    ssize_t n = write(OUT_FD, me->text + at, me->used - at);
    CHECK(n > 0 || errno == EINTR);
    at += n > 0 ? n : 0;
  }
  me->used = 0;
}

void print(const char *format, ...) {
  if (me->room - me->used < 4096) {
    if (me->is_thread) { // (Its text is printed in its turn.)
      me->room *= 2;
      me->text = realloc(me->text, me->room);
      CHECK(me->text != NULL);
    } else {
      flush();
    }
  }
  va_list args;
  va_start(args, format);
  int n = vsnprintf(me->text + me->used, 4096, format, args);
  va_end(args);
  CHECK(n >= 0 && n < 4096);
  me->used += n;
}

void hide(void) {
  for (int i = 0; i < PAGES; i++)
    if (protection(i) == (PROT_READ | PROT_WRITE))
      CHECK(write(NULL_FD, me->arena + i * PAGE, PAGE) == PAGE);
  CHECK(write(NULL_FD, me->scratch, PAGE) == PAGE);
  fill();
  memset(me->scratch, 0, PAGE);
}

static void print_argument(unsigned long v) {
  struct {
    const char *name;
    char *from;
    int pages;
  } parts[] = {{"arena", me->arena, PAGES}, {"scratch", me->scratch, 1}, {"region", me->region, REGION_PAGES}, {"loose", me->loose, 1}};
  for (int i = 0; i < 4; i++)
    if (v >= (unsigned long)parts[i].from && v < (unsigned long)parts[i].from + (parts[i].pages + 1) * PAGE) {
      print("%s+%#lx", parts[i].name, v - (unsigned long)parts[i].from);
      return;
    }
  if (v >= (unsigned long)me->names && v < (unsigned long)me->names + 2 * PAGE)
    print("\"%.30s\"", (const char *)v);
  else if (v + 300 < 100000)
    print("%ld", (long)v);
  else
    print("%#lx", v);
}

long call(const char *name, long nr, int how, const long *args, int count) {
  long a[6] = {0};
  memcpy(a, args, count * sizeof *a);
  print("%u %s(", me->step, name);
  for (int i = 0; i < count && !(how & ARGUMENTS); i++) {
    print(i > 0 ? ", " : "");
    print_argument(a[i]);
  }
  errno = 0;
  long r = syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
  int error = r == -1 ? errno : 0;
  if (how & VARIES)
    hide();
  if (error != 0)
    print(") = %s", strerrorname_np(error) ? strerrorname_np(error) : "?");
  else if (how & NUMBER)
    print(") = %s", r > 0 ? "+" : r < 0 ? "-" : "0");
  else
    print(") = %ld", r);
  print(" %016lx\n", digest());
  errno = error;
  return r;
}

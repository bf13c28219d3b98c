// A program of random system calls: `calls SEED STEPS [FIRST [LAST]]` makes step after step, each with choices that
// follow from the seed and its number, and prints what a program can tell: results, errors, a digest of its memory.
// It prints the same in each run. FIRST and LAST leave out steps before and behind, CALLS_ONLY=3,7,... in the
// environment all others, CALLS_WITHOUT=... these: what is left is as it was, so that a difference can be reduced.
// CALLS_AREAS=file,socket,... makes steps of these areas only. CALLS_NOW=1 writes each line at once.
#include "calls.h"
#include <dirent.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

__thread struct context *me;
const char *program;
unsigned asked_steps;
static struct context first_context;
static int at_once;

static const struct {
  const char *name;
  const struct action *actions;
  unsigned weight;
} areas[] = {
    {"transfer", transfer_actions, 30},
    {"file", file_actions, 20},
    {"path", path_actions, 15},
    {"wait", wait_actions, 12},
    {"getter", getter_actions, 10},
    {"socket", socket_actions, 20},
    {"signal", signal_actions, 12},
    {"timer", timer_actions, 4},
    {"process", process_actions, 3},
    {"thread", thread_actions, 1},
    {"memory", memory_actions, 12},
};
enum { AREAS = sizeof areas / sizeof *areas };

static const struct action *chosen(void) {
  const char *asked = getenv("CALLS_AREAS");
  for (;;) {
    unsigned weights = 0;
    for (int i = 0; i < AREAS; i++)
      weights += areas[i].weight;
    unsigned n = below(weights);
    int area = 0;
    while (n >= areas[area].weight)
      n -= areas[area++].weight;
    if (asked != NULL && !me->is_thread && strstr(asked, areas[area].name) == NULL)
      continue;
    const struct action *a;
    for (weights = 0, a = areas[area].actions; a->name != NULL; a++)
      weights += a->weight;
    if (weights == 0)
      continue;
    n = below(weights);
    for (a = areas[area].actions; n >= a->weight; a++)
      n -= a->weight;
    if (!me->is_thread || a->in_thread)
      return a;
  }
}

// Is this number in a list such as 3,7,10-12?
static int is_in(const char *list, unsigned number) {
  while (*list != 0) {
    char *end;
    unsigned from = strtoul(list, &end, 10), to = from;
    if (*end == '-')
      to = strtoul(end + 1, &end, 10);
    if (number >= from && number <= to)
      return 1;
    list = *end == 0 ? end : end + 1;
  }
  return 0;
}

static int is_wanted(unsigned step) {
  const char *only = getenv("CALLS_ONLY"), *without = getenv("CALLS_WITHOUT");
  return me->depth > 0 || me->is_thread || ((only == NULL || is_in(only, step)) && (without == NULL || !is_in(without, step)));
}

void one_step(unsigned step) {
  me->step = step;
  me->random = mixed(me->seed, step);
  chosen()->act();
  if (!me->is_thread)
    print_signals();
  if (at_once && !me->is_thread)
    flush();
}

void run_steps(struct context *c, unsigned first, unsigned last) {
  me = c;
  for (unsigned i = first; i < last; i++)
    if (is_wanted(i))
      one_step(i);
}

static void into(const char *folder) {
  mkdir(folder, 0700);
  CHECK(chdir(folder) == 0);
}

// Something of each kind to begin with.
static void begin_with(void) {
  CHECK(mkdir("dir", 0700) == 0 && symlink("dir", "link") == 0 && mkfifo("fifo", 0600) == 0);
  int file = open("a", O_RDWR | O_CREAT | O_NONBLOCK, 0600), other = open("dir/b", O_RDWR | O_CREAT | O_NONBLOCK, 0600);
  CHECK(file == FIRST_FD && other == FIRST_FD + 1 && write(file, first_context.arena, 2 * PAGE) == 2 * PAGE);
  CHECK(lseek(file, 0, SEEK_SET) == 0);
  int p[2], s[2];
  CHECK(pipe2(p, O_NONBLOCK) == 0 && write(p[1], first_context.arena, 300) == 300);
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s) == 0 && write(s[1], first_context.arena, 200) == 200);
  CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, s) == 0 && write(s[1], first_context.arena, 100) == 100);
  CHECK(eventfd(3, EFD_NONBLOCK) >= 0 && open(".", O_RDONLY | O_DIRECTORY) >= 0 && open("fifo", O_RDWR | O_NONBLOCK) >= 0);
}

// Runs the program's steps in a folder of its own; what it leaves there its parent removes.
static void in_folder(unsigned first, unsigned last) {
  umask(022);
  // (Some names lead upwards.)
  into("1"), into("2"), into("3"), into("4");
  int top = open(".", O_RDONLY | O_DIRECTORY);
  CHECK(top >= 0 && dup3(top, TOP_FD, O_CLOEXEC) == TOP_FD && close(top) == 0);
  // What is open already, and what descriptors 0 to 2 are, is not the same in each run.
  int null = open("/dev/null", O_RDWR);
  CHECK(null >= 0 && dup2(null, NULL_FD) == NULL_FD && close(null) == 0);
  if (first_context.depth == 0)
    CHECK(dup2(1, OUT_FD) == OUT_FD && dup2(2, ERR_FD) == ERR_FD);
  for (int i = 0; i < 3; i++)
    CHECK(dup2(NULL_FD, i) == i);
  struct rlimit size = {1 << 20, RLIM_INFINITY};
  CHECK(setrlimit(RLIMIT_FSIZE, &size) == 0);
  signal(SIGPIPE, SIG_IGN), signal(SIGXFSZ, SIG_IGN);
  me = &first_context;
  make_context(me, 0);
  if (me->depth > 0) // (What was not to be closed.)
    for (int i = FIRST_FD; i < FIRST_FD + FDS; i++)
      if (fcntl(i, F_GETFD) >= 0)
        print("  open: %d\n", i);
  CHECK(syscall(SYS_close_range, FIRST_FD, NULL_FD - 1, 0) == 0);
  begin_with();
  first_context.first_fd = FIRST_FD;
  first_context.fds = FDS;
  run_steps(&first_context, first, last);
  print("end\n");
  flush();
}

int main(int argc, char **argv) {
  if (argc < 3 || argc > 5) {
    fprintf(stderr, "usage: calls SEED STEPS [FIRST [LAST]]\n");
    return 2;
  }
  program = realpath(argv[0], NULL);
  at_once = getenv("CALLS_NOW") != NULL;
  first_context.depth = getenv("CALLS_DEPTH") != NULL ? atoi(getenv("CALLS_DEPTH")) : 0;
  first_context.seed = mixed(strtoull(argv[1], NULL, 0), 77);
  asked_steps = strtoul(argv[2], NULL, 0);
  unsigned first = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
  unsigned last = argc > 4 ? strtoul(argv[4], NULL, 0) : asked_steps;
  if (last > asked_steps)
    last = asked_steps;
  in_folder(first, last);
  return 0;
}

// What the parts of the generator share: a step's choices, its memory, its calls and what is printed of them.
#ifndef CALLS_H
#define CALLS_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  PAGE = 4096,
  PAGES = 20,        // of the arena
  REGION_PAGES = 24, // for the calls about memory
  FIRST_FD = 3,
  FDS = 26,      // the program's own descriptors, from FIRST_FD on
  NULL_FD = 200, // /dev/null: what varies from run to run goes there, for the replicas to be compared
  OUT_FD = 201,
  ERR_FD = 202,
  TOP_FD = 203, // the program's own folder
};

// What one thread works with.
struct context {
  uint64_t random;  // of this step
  uint64_t seed;    // all steps' are made from it
  char *arena;      // PAGES pages of different kinds
  char *scratch;    // a page for structures that name others
  char *names;      // two pages for paths
  char *loose;      // a page that is not looked at, for times and ids
  char *region;     // REGION_PAGES addresses for mappings
  int first_fd;     // its descriptors
  int fds;
  int is_thread; // (it shares directory and descriptors with others)
  int depth;     // of processes
  unsigned name; // the next path's place
  unsigned step;
  char *text; // what is printed, until it is written
  size_t used;
  size_t room;
};
extern __thread struct context *me;

// One kind of step.
struct action {
  const char *name;
  void (*act)(void);
  unsigned weight;
  int in_thread; // may it be done while other threads do theirs?
};
// The areas' actions, each ended by one without a name.
extern const struct action transfer_actions[], file_actions[], path_actions[], wait_actions[], socket_actions[], memory_actions[],
    signal_actions[], timer_actions[], process_actions[], getter_actions[], thread_actions[];

// A check of the generator's own.
#define CHECK(cond)                                                                                                                \
  do {                                                                                                                             \
    if (!(cond)) {                                                                                                                 \
      dprintf(ERR_FD, "%s:%d: CHECK(%s) failed, errno %d (%s)\n", __FILE__, __LINE__, #cond, errno, strerror(errno));              \
      _exit(99);                                                                                                                   \
    }                                                                                                                              \
  } while (0)

// pick.c: choices
uint64_t next_random(void);
uint64_t mixed(uint64_t a, uint64_t b);
uint64_t below(uint64_t n);
int one_in(unsigned n);
#define PICK(type, ...) (((type[]){__VA_ARGS__})[below(sizeof((type[]){__VA_ARGS__}) / sizeof(type))])
int fd(void);           // a descriptor, or none
void *at(void);         // somewhere in memory, or nowhere
void *at_nested(void);  // the same, for a pointer that lies in memory itself
void *good(void);       // where 4 KiB can be read and written
void *nowhere(void);    // where nothing is, of all kinds
void *nowhere_nested(void);
uint64_t len(void);     // any length
uint64_t small(void);   // most often a small one
uint64_t offset(void);  // in a file
int flags_of(const int *flags, int count); // some of them, rarely odd bits
#define FLAGS(...) flags_of((int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))
const char *named(const char *path); // puts a path where it is printed
const char *path(void);
const char *file_path(void); // never one that leads out of the program's folder
struct iovec;
struct iovec *vector(int *count);
void make_context(struct context *c, int index); // its memory, number `index` of several
void fill(void);                                 // the arena as at the begin
int protection(int page);
uint64_t digest(void);

// print.c: a step's calls, and what is printed of them
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void flush(void);
void hide(void); // what the arena and scratch hold varies from run to run
long call(const char *name, long nr, int how, const long *args, int count);
enum {
  SHOWN = 0,
  VARIES = 1,    // what it writes varies from run to run
  NUMBER = 2,    // so does its result, when it is no error
  ARGUMENTS = 4, // and its arguments
};
#define CALL(name, ...) CALL_HOW(SHOWN, name, __VA_ARGS__)
#define CALL_HOW(how, name, ...) CALL_NR(how, #name, SYS_##name, __VA_ARGS__)
#define CALL_NR(how, name, nr, ...) call(name, nr, how, (const long[]){EACH(__VA_ARGS__)}, sizeof((const long[]){EACH(__VA_ARGS__)}) / sizeof(long))
#define CALL_0(how, name) call(#name, SYS_##name, how, NULL, 0)
#define L1(a) (long)(a)
#define L2(a, ...) (long)(a), L1(__VA_ARGS__)
#define L3(a, ...) (long)(a), L2(__VA_ARGS__)
#define L4(a, ...) (long)(a), L3(__VA_ARGS__)
#define L5(a, ...) (long)(a), L4(__VA_ARGS__)
#define L6(a, ...) (long)(a), L5(__VA_ARGS__)
#define NTH(a, b, c, d, e, f, n, ...) n
#define EACH(...) NTH(__VA_ARGS__, L6, L5, L4, L3, L2, L1)(__VA_ARGS__)

// calls.c: steps
void run_steps(struct context *c, unsigned first, unsigned last);
void one_step(unsigned step);
extern const char *program; // its absolute path
extern unsigned asked_steps;

// signals.c: what handlers have seen is printed behind each step
void print_signals(void);
void reset_signals(void);
int faults(char *p, int writes, int *code); // timers.c: which signal an access gives
#endif

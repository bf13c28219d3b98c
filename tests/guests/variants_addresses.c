// build: -pthread
// loses
// delayed: short
// Proves: an address that is given to the kernel comes back as the replica's own (epoll's data, a signal's value, of a
// thread that waits for it and in a handler), /proc/self/maps and auxv show a replica its own places, and what the kernel
// does not look at (padding of struct flock, bytes behind a socket's path, a futex's second word) may be any
// address. (All were found different in replicas that lie at different addresses.)
#define _GNU_SOURCE
#include "guest.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

static void *volatile handled;
static int in_data;
static uint64_t counter;
static int rounds;

static void on_signal(int n, siginfo_t *info, void *context) {
  (void)n, (void)context;
  handled = info->si_value.sival_ptr;
}

static void epoll_data(void *address) {
  int e = epoll_create1(0), event = eventfd(1, 0);
  struct epoll_event v = {.events = EPOLLIN, .data.ptr = address}, got[4] = {0};
  CHECK(e >= 0 && event >= 0);
  CHECK(epoll_ctl(e, EPOLL_CTL_ADD, event, &v) == 0);
  CHECK(epoll_wait(e, got, 4, -1) == 1 && got[0].data.ptr == address);
  // A number that looks like an address of another layout's is a number.
  for (uint64_t high = 0x5300; high < 0x5800; high += 0x80) {
    v.data.u64 = high << 32 | 7;
    CHECK(epoll_ctl(e, EPOLL_CTL_MOD, event, &v) == 0);
    CHECK(epoll_wait(e, got, 4, -1) == 1 && got[0].data.u64 == (high << 32 | 7));
  }
  close(e);
  close(event);
}

static void signal_values(void *address) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
  union sigval value = {.sival_ptr = address};
  sigset_t one;
  siginfo_t info;
  CHECK(sigaction(SIGUSR1, &action, 0) == 0);
  CHECK(sigqueue(getpid(), SIGUSR1, value) == 0);
  CHECK(handled == address);
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  CHECK(sigprocmask(SIG_BLOCK, &one, 0) == 0);
  CHECK(sigqueue(getpid(), SIGUSR2, value) == 0);
  CHECK(sigwaitinfo(&one, &info) == SIGUSR2 && info.si_value.sival_ptr == address);
  value.sival_int = 7; // (The other half is an address's.)
  CHECK(sigqueue(getpid(), SIGUSR2, value) == 0);
  CHECK(sigwaitinfo(&one, &info) == SIGUSR2 && info.si_value.sival_int == 7);
}

static void own_places(void) {
  pthread_attr_t attributes;
  void *stack, *heap = malloc(100);
  size_t size;
  int here;
  CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
  CHECK(pthread_attr_getstack(&attributes, &stack, &size) == 0);
  CHECK((char *)&here > (char *)stack && (char *)&here < (char *)stack + size);
  uintptr_t wanted[] = {(uintptr_t)own_places, (uintptr_t)&in_data, (uintptr_t)&here,
                        (uintptr_t)heap, (uintptr_t)stdout};
  unsigned found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  CHECK(maps);
  while (fgets(line, sizeof line, maps)) {
    unsigned long start, end;
    if (sscanf(line, "%lx-%lx", &start, &end) == 2)
      for (unsigned i = 0; i < 5; i++)
        if (wanted[i] >= start && wanted[i] < end)
          found |= 1u << i;
  }
  fclose(maps);
  CHECK(found == 31);
  Elf64_auxv_t vector[64];
  int fd = open("/proc/self/auxv", O_RDONLY);
  ssize_t n = read(fd, vector, sizeof vector);
  CHECK(n > 0);
  for (ssize_t i = 0; i < n / (ssize_t)sizeof *vector; i++)
    if (vector[i].a_type == AT_ENTRY || vector[i].a_type == AT_PHDR || vector[i].a_type == AT_RANDOM)
      CHECK(vector[i].a_un.a_val == getauxval(vector[i].a_type));
  close(fd);
  free(heap);
}

static void unlooked(void *address) {
  union {
    struct flock lock;
    void *words[4];
  } u = {.words = {address, address, address, address}};
  int fd = memfd_create("a file", 0);
  u.lock.l_type = F_WRLCK;
  u.lock.l_whence = SEEK_SET;
  u.lock.l_start = 0;
  u.lock.l_len = 1;
  CHECK(fcntl(fd, F_SETLK, &u.lock) == 0);
  CHECK(fcntl(fd, F_GETLK, &u.lock) == 0 && u.lock.l_type == F_UNLCK);
  struct sockaddr_un nobody = {.sun_family = AF_UNIX, .sun_path = "/nowhere/at/all"};
  memcpy(nobody.sun_path + 40, &address, sizeof address);
  int s = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(connect(s, (struct sockaddr *)&nobody, sizeof nobody) == -1 && errno == ENOENT);
  CHECK(sendto(s, "x", 1, 0, (struct sockaddr *)&nobody, sizeof nobody) == -1);
  int word = 1;
  CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, (char *)address + 1, address) == -1);
  close(fd);
  close(s);
}

// A counter above an index: it comes to look like an address.
static void *counts(void *x) {
  for (int i = 0; i < rounds; i++) {
    uint64_t seen = __atomic_load_n(&counter, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(&counter, &seen, seen + (1ull << 32), 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
      ;
  }
  return x;
}

static void count_from(uint64_t first, int each) {
  pthread_t threads[2];
  counter = first << 32;
  rounds = each;
  for (int i = 0; i < 2; i++)
    CHECK(pthread_create(&threads[i], 0, counts, 0) == 0);
  for (int i = 0; i < 2; i++)
    CHECK(pthread_join(threads[i], 0) == 0);
  CHECK(counter == (first + 2 * each) << 32);
}

// With an argument it counts only where programs, and where libraries and stacks lie.
int main(int argc, char **argv) {
  (void)argv;
  int on_stack;
  void *heap = malloc(64);
  void *addresses[] = {&on_stack, heap, &in_data, (void *)main, stdout};
  for (int i = 0; i < 5; i++) {
    epoll_data(addresses[i]);
    signal_values(addresses[i]);
    unlooked(addresses[i]);
  }
  own_places();
  if (argc == 1) {
    count_from(0, 0x6000);
  } else {
    count_from(0x5400, 0x200);
    count_from(0x7d00, 0x200);
  }
  free(heap);
  guest_ok("variants_addresses");
}

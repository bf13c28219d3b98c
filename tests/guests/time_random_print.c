// build:
// loses
// not in code: what it prints are addresses, or is made of them
// not in data: what it prints are addresses, or is made of them
// Proves: everything that differs between processes by nature is one input:
// clocks, rdtsc, getrandom, ids, AT_RANDOM, the vDSO, cpu number; all printed.
#include "guest.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <x86intrin.h>
int main(void) {
  struct timespec ts;
  struct timeval tv;
  struct tms tms;
  struct rusage ru;
  struct sysinfo si;
  unsigned char r[16];
  unsigned aux, cpu, node;
  printf("time %ld\n", (long)time(NULL));
  for (int c = 0; c < 8; c++)
    if (clock_gettime(c, &ts) == 0)
      printf("clock %d %ld.%09ld\n", c, (long)ts.tv_sec, ts.tv_nsec);
  gettimeofday(&tv, NULL);
  printf("gettimeofday %ld.%06ld\n", (long)tv.tv_sec, (long)tv.tv_usec);
  printf("times %ld clock %ld\n", (long)times(&tms), (long)clock());
  printf("rdtsc %llu\n", (unsigned long long)__rdtsc());
  printf("rdtscp %llu\n", (unsigned long long)__rdtscp(&aux));
  CHECK(getrandom(r, 16, 0) == 16);
  printf("getrandom %02x%02x%02x%02x\n", r[0], r[1], r[2], r[15]);
  CHECK(getentropy(r, 16) == 0);
  printf("getentropy %02x%02x%02x%02x\n", r[0], r[1], r[2], r[15]);
  int fd = open("/dev/urandom", O_RDONLY);
  CHECK(fd >= 0 && read(fd, r, 16) == 16 && close(fd) == 0);
  printf("urandom %02x%02x%02x%02x\n", r[0], r[1], r[2], r[15]);
  const unsigned char *at = (const unsigned char *)getauxval(AT_RANDOM);
  CHECK(at);
  printf("AT_RANDOM ");
  for (int i = 0; i < 16; i++)
    printf("%02x", at[i]);
  printf("\nids %d %d %d %d %d\n", getpid(), getppid(), getpgrp(), getsid(0),
         (int)syscall(SYS_gettid));
  srand(time(NULL) ^ getpid());
  printf("rand %d %d\n", rand(), rand());
  CHECK(getrusage(RUSAGE_SELF, &ru) == 0 && sysinfo(&si) == 0);
  printf("faults %ld up %ld\n", ru.ru_minflt, si.uptime);
  CHECK(getcpu(&cpu, &node) == 0);
  printf("cpu %d %u\n", sched_getcpu(), cpu);
  char load[128] = {0};
  fd = open("/proc/stat", O_RDONLY);
  CHECK(fd >= 0 && read(fd, load, sizeof load - 1) > 0);
  printf("stat %.60s\n", load);
  printf("stack %p heap %p code %p\n", (void *)&fd, malloc(10), (void *)main);
  guest_ok("time_random_print");
}

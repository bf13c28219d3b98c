// build:
// deterministic
// loses
// Proves: where Geryon lies nothing is for the program, as natively: a call that is given an address there says EFAULT
// (ENOMEM), reads nothing from there, and writes nothing over it. (It wrote what lies there to a file, each replica
// another one's; a read into it ended the run.)
#include "guest.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
int main(void) {
  // Image, data of a process, blocks and stacks of threads, the log.
  static const unsigned long places[] = {0x2fe500000000, 0x2fe500001000, 0x2fe510000000, 0x2fe520000000,
                                         0x2fe52000e000, 0x2fe580000000, 0x2fe580011000};
  const char *file = guest_tmp("raw_reserved");
  for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
    char *p = (char *)places[i];
    int f = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(f >= 0 && write(f, "0123456789", 10) == 10 && lseek(f, 0, SEEK_SET) == 0);
    CHECK(syscall(SYS_write, f, p, 5) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_pwrite64, f, p, 5000, 0) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_read, f, p, 5) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_open, p, O_RDONLY) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_stat, "/", p) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_writev, f, p, 1) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, p) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, p, 8) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_rt_sigaction, SIGUSR1, p, NULL, 8) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_fcntl, f, F_GETLK, p) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_mprotect, p, 4096, PROT_NONE) == -1 && errno == ENOMEM);
    CHECK(syscall(SYS_madvise, p, 4096, MADV_DONTNEED) == -1 && errno == ENOMEM);
    CHECK(close(f) == 0);
    // The registers are the program's.
    unsigned long kept = places[i], r = SYS_write;
    __asm__ volatile("syscall" : "+a"(r), "+S"(kept) : "D"(-1l), "d"(5l) : "rcx", "r11", "memory");
    CHECK(kept == places[i] && (long)r == -EBADF);
  }
  CHECK(unlink(file) == 0);
  guest_ok("raw_reserved");
}

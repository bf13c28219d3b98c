// build:
// deterministic
// loses
// Proves: a seccomp filter of the program is honoured: calls that it denies return its errno and are not made, others are
// made; what the kernel refuses as a filter is refused alike; the program's mode is its own.
#include "guest.h"
#include "seccomp.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void refused(struct sock_filter *code, unsigned short n, int error) {
  struct sock_fprog p = {n, code};
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p) == -1);
  CHECK(errno == error);
}

// Who has no privileges may not install one, unless its programs have none either.
static void without_privileges(void) {
  if (geteuid() != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0)
    return;
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    CHECK(setuid(65534) == 0);
    struct sock_filter good[] = {SAY(SECCOMP_RET_ALLOW)};
    refused(good, 1, EACCES);
    refused(good, 0, EINVAL);
    no_new_privs();
    INSTALL(good);
    _exit(0);
  }
  int st = -1;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0);
}

int main(void) {
  CHECK(prctl(PR_GET_SECCOMP) == 0);
  without_privileges();
  no_new_privs();
  struct sock_filter open_end[] = {LOAD(nr)};
  struct sock_filter divides[] = {BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), SAY(SECCOMP_RET_ALLOW)};
  struct sock_filter unknown[] = {BPF_STMT(BPF_LD | BPF_MEM, 3), SAY(SECCOMP_RET_ALLOW)};
  struct sock_filter beyond[] = {BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0), SAY(SECCOMP_RET_ALLOW)};
  struct sock_filter odd[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), SAY(SECCOMP_RET_ALLOW)};
  struct sock_filter good[] = {SAY(SECCOMP_RET_ALLOW)};
  refused(open_end, 1, EINVAL);
  refused(divides, 2, EINVAL);
  refused(unknown, 2, EINVAL);
  refused(beyond, 2, EINVAL);
  refused(odd, 2, EINVAL);
  refused(good, 0, EINVAL);
  refused(good, 5000, EINVAL);
  refused((void *)8, 1, EFAULT);
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 1 << 20, NULL) == -1 && errno == EINVAL);
  CHECK(syscall(SYS_seccomp, 77, 0, NULL) == -1 && errno == EINVAL);
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, good) == -1 && errno == EINVAL);
  unsigned action = SECCOMP_RET_TRAP;
  CHECK(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0);
  action = 0x12340000;
  CHECK(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == -1 && errno == EOPNOTSUPP);
  CHECK(prctl(PR_SET_SECCOMP, 9, 0) == -1 && errno == EINVAL);
  CHECK(prctl(PR_GET_SECCOMP) == 0);

  const char *path = guest_tmp("seccomp-dir");
  rmdir(path);
  struct sock_filter code[] = {
      LOAD(nr),
      // Not made, with an errno, and with none.
      IF(__NR_mkdir, SECCOMP_RET_ERRNO | EXDEV),
      IF(__NR_getppid, SECCOMP_RET_ERRNO | 0),
      IF(__NR_sethostname, SECCOMP_RET_ERRNO | 0xffff),
      // Nobody traces it, and nobody is told.
      IF(__NR_setdomainname, SECCOMP_RET_TRACE | 3),
      IF(__NR_syncfs, SECCOMP_RET_USER_NOTIF),
      IF(__NR_getuid, SECCOMP_RET_LOG),
      // By its arguments: lseek to 2^32 + 7 with any origin.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_lseek, 0, 5),
      LOAD(args[1]),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
      SAY(SECCOMP_RET_ERRNO | EISDIR),
      SAY(SECCOMP_RET_ALLOW),
  };
  INSTALL(code);
  CHECK(prctl(PR_GET_SECCOMP) == 2);
  CHECK(mkdir(path, 0700) == -1 && errno == EXDEV);
  struct stat st;
  CHECK(stat(path, &st) == -1 && errno == ENOENT);
  CHECK(syscall(SYS_getppid) == 0);
  CHECK(sethostname("x", 1) == -1 && errno == 4095);
  CHECK(syscall(SYS_setdomainname, "x", 1) == -1 && errno == ENOSYS);
  CHECK(syncfs(1) == -1 && errno == ENOSYS);
  CHECK(getuid() == geteuid());
  int fd = open("/proc/self/exe", O_RDONLY);
  CHECK(fd >= 0);
  CHECK(lseek(fd, 7, SEEK_SET) == 7);
  CHECK(lseek(fd, (1ll << 32) + 7, SEEK_SET) == -1 && errno == EISDIR);
  CHECK(lseek(fd, (1ll << 32) + 8, SEEK_SET) == (1ll << 32) + 8);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == -1 && errno == EINVAL);
  guest_ok("seccomp_errno");
}

// build: -pthread
// deterministic
// loses
// Proves: where a filter says TRAP the handler of SIGSYS is told what the kernel tells it, with the registers rolled back,
// and may give the call a result; where none can run, the process dies of SIGSYS.
#include "guest.h"
#include "seccomp.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>

static volatile sig_atomic_t count;
static __thread int here;

static void handler(int signal, siginfo_t *info, void *context) {
  ucontext_t *u = context;
  greg_t *r = u->uc_mcontext.gregs;
  CHECK(signal == SIGSYS && info->si_signo == SIGSYS && info->si_code == 1);
  CHECK(info->si_errno == 77 && info->si_arch == AUDIT_ARCH_X86_64);
  CHECK((greg_t)info->si_call_addr == r[REG_RIP]);
  CHECK(((unsigned char *)r[REG_RIP])[-2] != 0);
  CHECK(r[REG_RAX] == info->si_syscall);
  count++;
  here++;
  if (info->si_syscall == SYS_mkdir)
    r[REG_RAX] = r[REG_RDI] + r[REG_RSI] + r[REG_RDX] + r[REG_R10] + r[REG_R8] + r[REG_R9];
  else if (info->si_syscall == SYS_rmdir)
    // Not allowed in the handler.
    syscall(SYS_rmdir, 0);
}

static void *thread(void *arg) {
  for (long i = 0; i < 1000; i++)
    CHECK(syscall(SYS_mkdir, i, 1, 2, 3, 4, 5) == i + 15);
  CHECK(here == 1000);
  return arg;
}

static void dies(const char *how) {
  fflush(stdout);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    if (strcmp(how, "ignored") == 0)
      a.sa_handler = SIG_IGN, a.sa_flags = 0;
    if (strcmp(how, "default") == 0)
      a.sa_handler = SIG_DFL, a.sa_flags = 0;
    CHECK(sigaction(SIGSYS, &a, NULL) == 0);
    if (strcmp(how, "blocked") == 0)
      CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    syscall(strcmp(how, "nested") == 0 ? SYS_rmdir : SYS_mkdir, 0, 0, 0, 0, 0, 0);
    _exit(1);
  }
  int st = 0;
  CHECK(waitpid(pid, &st, 0) == pid);
  CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS);
  printf("%s: dies\n", how);
}

int main(void) {
  struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSYS, &a, NULL) == 0);
  struct sock_filter code[] = {
      LOAD(nr),
      IF(__NR_mkdir, SECCOMP_RET_TRAP | 77),
      IF(__NR_rmdir, SECCOMP_RET_TRAP | 77),
      SAY(SECCOMP_RET_ALLOW),
  };
  no_new_privs();
  INSTALL(code);
  CHECK(syscall(SYS_mkdir, 1, 2, 3, 4, 5, 6) == 21 && count == 1);
  // What the registers hold, and where it is, as natively.
  long result;
  register long r10 __asm__("r10") = 4, r8 __asm__("r8") = 5, r9 __asm__("r9") = 6;
  __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_mkdir), "D"(1), "S"(2), "d"(3), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  CHECK(result == 21 && count == 2);
  here = 0;
  pthread_t t;
  CHECK(pthread_create(&t, NULL, thread, NULL) == 0);
  thread(NULL);
  CHECK(pthread_join(t, NULL) == 0);
  dies("nested");
  dies("blocked");
  dies("ignored");
  dies("default");
  guest_ok("seccomp_trap");
}

// Short words for seccomp filters.
#ifndef SECCOMP_H
#define SECCOMP_H
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SAY(what) BPF_STMT(BPF_RET | BPF_K, (what))
// The accumulator is this: say that.
#define IF(value, what) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), SAY(what)

#define INSTALL(code)                                                                               \
  do {                                                                                              \
    struct sock_fprog p_ = {sizeof(code) / sizeof((code)[0]), (code)};                              \
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p_) == 0);                              \
  } while (0)

static inline void no_new_privs(void) { CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0); }
#endif

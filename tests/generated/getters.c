// What a process is told of itself and of the machine, and what it sets of that.
#include "calls.h"
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

// Its own id, 0, or one that nobody has.
static long an_id(void) { return PICK(long, 0, 0, getpid(), -1, 0x3fffff0); }

static void do_limit(void) {
  int which = PICK(int, RLIMIT_NOFILE, RLIMIT_CORE, RLIMIT_STACK, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_NICE, 16, 99, -1);
  switch (below(3)) {
  case 0:
    CALL(getrlimit, which, at());
    break;
  case 1:
    CALL_HOW(ARGUMENTS, prlimit64, an_id(), which, NULL, at());
    break;
  default: {
    uint64_t limit[2] = {250 + below(500), one_in(8) ? 100 : 4096};
    memcpy(me->scratch, limit, sizeof limit);
    if (one_in(2))
      CALL(setrlimit, PICK(int, RLIMIT_NOFILE, 16), one_in(4) ? nowhere() : me->scratch);
    else
      CALL_HOW(ARGUMENTS, prlimit64, an_id(), PICK(int, RLIMIT_NOFILE, 17), one_in(4) ? nowhere() : me->scratch, one_in(2) ? at() : NULL);
  }
  }
}
static void do_priority(void) {
  switch (below(3)) {
  case 0:
    CALL_HOW(ARGUMENTS, getpriority, PICK(int, 0, 0, 3), an_id());
    break;
  case 1:
    CALL_HOW(ARGUMENTS, setpriority, PICK(int, 0, 0, 3), an_id(), PICK(int, 0, 1, 2));
    break;
  default:
    CALL_HOW(ARGUMENTS, ioprio_get, PICK(int, 1, 1, 4), an_id());
  }
}
static void do_sched(void) {
  int p[1] = {PICK(int, 0, 0, 1, 100)};
  memcpy(me->scratch, p, sizeof p);
  switch (below(8)) {
  case 0:
    CALL_HOW(ARGUMENTS, sched_getparam, an_id(), at());
    break;
  case 1:
    CALL_HOW(ARGUMENTS, sched_getscheduler, an_id());
    break;
  case 2:
    CALL_HOW(ARGUMENTS, sched_setscheduler, an_id(), PICK(int, 0, 3, 77, -1), one_in(4) ? nowhere() : me->scratch);
    break;
  case 3:
    CALL(sched_get_priority_max, PICK(int, 0, 1, 2, 3, 5, 99, -1));
    break;
  case 4:
    CALL_HOW(ARGUMENTS | VARIES, sched_rr_get_interval, an_id(), at());
    break;
  case 5:
    CALL_HOW(ARGUMENTS, sched_getaffinity, an_id(), PICK(long, 8, 128, 1024, 7, 0, -1), at());
    break;
  case 6: {
    uint32_t attr[14] = {PICK(uint32_t, 48, 56, 0, 40, 4096, 47), PICK(uint32_t, 0, 3, 99)};
    memset(me->scratch, 0, 256);
    memcpy(me->scratch, attr, sizeof attr);
    CALL_HOW(ARGUMENTS, sched_setattr, an_id(), one_in(4) ? at() : me->scratch, one_in(4));
    break;
  }
  default:
    CALL_HOW(ARGUMENTS, sched_getattr, an_id(), at(), PICK(long, 48, 56, 100, 10, 0, 5000), one_in(6));
  }
}
static void do_name(void) {
  switch (below(4)) {
  case 0:
    CALL(uname, at());
    break;
  case 1:
    CALL_HOW(VARIES, sysinfo, at());
    break;
  case 2:
    CALL_HOW(VARIES, getrusage, PICK(int, 0, 1, -1, 7), at());
    break;
  default:
    CALL_HOW(VARIES | NUMBER, times, at());
  }
}
static void do_ids(void) {
  switch (below(10)) {
  case 0:
    CALL_HOW(NUMBER | ARGUMENTS, getpgid, an_id());
    break;
  case 1:
    CALL_HOW(NUMBER | ARGUMENTS, getsid, an_id());
    break;
  case 2:
    CALL(getresuid, at(), at(), at());
    break;
  case 3:
    CALL(getresgid, at(), at(), at());
    break;
  case 4:
    CALL(getgroups, one_in(3) ? 0 : (int)small(), at());
    break;
  case 5:
    CALL(setreuid, -1, -1);
    break;
  case 6:
    CALL(setfsuid, -1);
    break;
  case 7:
    CALL_HOW(ARGUMENTS, setpgid, an_id(), PICK(long, -1, 0x3fffff0));
    break;
  case 8:
    print("%u ids: %d %d\n", me->step, getpid() == (int)syscall(SYS_gettid), getppid() > 0);
    break;
  default:
    CALL_HOW(VARIES, getcpu, at(), at(), NULL);
  }
}
static void do_cap(void) {
  struct __user_cap_header_struct h = {PICK(uint32_t, 0x20080522, 0x20080522, 0x19980330, 0), (int)an_id()};
  memcpy(me->loose, &h, sizeof h);
  CALL_HOW(ARGUMENTS, capget, one_in(4) ? at() : me->loose, one_in(3) ? NULL : at());
}
static void do_prctl(void) {
  switch (below(10)) {
  case 0:
    CALL(prctl, PR_GET_NAME, at());
    break;
  case 1:
    CALL(prctl, PR_SET_NAME, one_in(3) ? at() : (void *)named(PICK(const char *, "x", "a name of twenty letters", "")));
    break;
  case 2:
    CALL(prctl, PR_GET_PDEATHSIG, at());
    break;
  case 3:
    CALL(prctl, PR_SET_PDEATHSIG, PICK(int, 0, 10, 65, -1));
    break;
  case 4:
    CALL(prctl, PR_GET_CHILD_SUBREAPER, at());
    break;
  case 5:
    CALL(prctl, PR_SET_TIMERSLACK, PICK(long, 50000, 0, 1));
    break;
  case 6:
    CALL(prctl, PR_CAPBSET_READ, PICK(int, 0, 21, 64, -1));
    break;
  case 7:
    CALL(prctl, PR_SET_KEEPCAPS, PICK(int, 0, 1, 2));
    break;
  default: // (Not PR_GET_NO_NEW_PRIVS: Geryon's filter needs it.)
    CALL(prctl, PICK(int, PR_GET_TIMERSLACK, PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_SECUREBITS), 0, 0, 0, 0);
  }
}
static void do_random(void) { CALL_HOW(VARIES, getrandom, at(), small() % 5000, PICK(int, 0, 1, 4, 6, 8)); }
static void do_robust(void) {
  CALL(set_robust_list, 0, PICK(long, 24, 23, 0));
  CALL_HOW(VARIES | ARGUMENTS, get_robust_list, PICK(long, 0, -1, 0x3fffff0), at(), at());
}
static void odd_call(void) {
  // Calls that answer at once whatever they are given.
  switch (below(4)) {
  case 0:
    CALL(sched_yield, 0);
    break;
  case 1:
    CALL(personality, 0xffffffff);
    break;
  case 2:
    CALL(membarrier, PICK(int, 99, 4, -1), 0, 0);
    break;
  default:
    CALL_NR(SHOWN, "none", 1 << 30, 1, 2);
  }
}

const struct action getter_actions[] = {
    {"limit", do_limit, 2, 0},
    {"priority", do_priority, 1, 0},
    {"sched", do_sched, 3, 0},
    {"name", do_name, 2, 0},
    {"ids", do_ids, 3, 0},
    {"cap", do_cap, 1, 0},
    {"prctl", do_prctl, 3, 0},
    {"random", do_random, 1, 1},
    {"robust", do_robust, 1, 0},
    {"odd", odd_call, 1, 0},
    {0},
};

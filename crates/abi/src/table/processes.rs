//! Processes, threads, signals, scheduling, identity.

use crate::row::{Kind::*, Len::*, Row};

const PRIO_PROCESS: u32 = 0;
const IOPRIO_WHO_PROCESS: u32 = 1;

rows! { pub(super) PROCESSES:
  13 rt_sigaction Local Full (signum: Int32, act: In(Fixed(32)), oldact: Out(Fixed(32)), sigsetsize: Int);
  14 rt_sigprocmask Local Full (how: Int32, set: In(Arg(3)), oldset: Out(Arg(3)), sigsetsize: Int);
  15 rt_sigreturn Lifecycle Full ();
  24 sched_yield Local Full ();
  34 pause Input Full () [Interruptible, Looks];
  39 getpid Input Full () -> Id [Looks, Unordered, Prompt];
  56 clone Lifecycle Partial (flags: Int, stack: Addr, parent_tid: Special, child_tid: Special, tls: Addr)
    "Threads as pthread_create makes them and processes as fork makes them. New namespaces are refused with EPERM, \
     CLONE_PARENT, CLONE_PIDFD and memory without all the rest with EINVAL. A process that shares descriptors with its \
     maker (CLONE_FILES), or in a forked process the directory (CLONE_FS), is not taken over when its leader is lost: \
     the run stops.";
  57 fork Lifecycle Full ();
  58 vfork Lifecycle Partial ()
    "A child that is killed by a signal while it runs in its parent's memory stops the run with a report. So does, in \
     a forked process with several threads that has not executed another program, the loss of its leader while \
     such a child runs and all other threads wait for the one that has made it.";
  59 execve Lifecycle Full (pathname: Path, argv: Strings, envp: Strings);
  60 exit Lifecycle Full (status: Int32);
  61 wait4 Lifecycle Full (pid: Int32, wstatus: Out(Fixed(4)), options: Int32, rusage: Out(Fixed(144))) [Interruptible];
  62 kill Lifecycle Full (pid: Id, sig: Int32) [Soon, Signals];
  97 getrlimit Input Full (resource: Int32, rlim: Out(Fixed(16))) [Looks, Unordered, Soon];
  98 getrusage Input Full (who: Int32, usage: Out(Fixed(144))) [Looks, Unordered, Prompt];
  100 times Input Full (buf: Out(Fixed(32))) [Looks, Unordered];
  102 getuid Local Full () [Looks, Unordered, Prompt];
  104 getgid Local Full () [Looks, Unordered, Prompt];
  105 setuid Local Full (uid: Int32) [Soon];
  106 setgid Local Full (gid: Int32) [Soon];
  107 geteuid Local Full () [Looks, Unordered, Prompt];
  108 getegid Local Full () [Looks, Unordered, Prompt];
  109 setpgid Each Full (pid: Id, pgid: Group);
  110 getppid Input Full () -> Id [Looks, Prompt];
  111 getpgrp Input Full () -> Id [Looks, Soon];
  112 setsid Each Full () -> Id [Soon];
  113 setreuid Local Full (ruid: Int32, euid: Int32) [Soon];
  114 setregid Local Full (rgid: Int32, egid: Int32) [Soon];
  115 getgroups Local Full (size: Int32, list: Out(RetTimes(0, 4))) [Soon];
  116 setgroups Local Full (size: Int32, list: In(ArgTimes(0, 4))) [Soon];
  117 setresuid Local Full (ruid: Int32, euid: Int32, suid: Int32) [Soon];
  118 getresuid Local Full (ruid: Out(Fixed(4)), euid: Out(Fixed(4)), suid: Out(Fixed(4))) [Soon];
  119 setresgid Local Full (rgid: Int32, egid: Int32, sgid: Int32) [Soon];
  120 getresgid Local Full (rgid: Out(Fixed(4)), egid: Out(Fixed(4)), sgid: Out(Fixed(4))) [Soon];
  121 getpgid Input Full (pid: Id) -> Id [Looks, Soon];
  122 setfsuid Local Full (fsuid: Int32) [Soon];
  123 setfsgid Local Full (fsgid: Int32) [Soon];
  124 getsid Input Full (pid: Id) -> Id [Looks, Soon];
  125 capget Input Full (hdrp: CapHeader, datap: Out(Fixed(24))) [Looks];
  126 capset Each Full (hdrp: CapHeader, datap: In(Fixed(24)));
  127 rt_sigpending Input Full (set: Out(Arg(1)), sigsetsize: Int) [Looks];
  128 rt_sigtimedwait Input Full (set: In(Arg(3)), info: SiginfoOut, timeout: In(Fixed(16)), sigsetsize: Int) [Interruptible];
  129 rt_sigqueueinfo Lifecycle Full (tgid: Id, sig: Int32, info: Siginfo) [Signals];
  130 rt_sigsuspend Lifecycle Full (mask: Sigmask, sigsetsize: Int) [Interruptible];
  131 sigaltstack Local Full (ss: In(Fixed(24)), old_ss: Out(Fixed(24)));
  135 personality Local Full (persona: Int32);
  140 getpriority Input Full (which: Int32, who: IdIf(0, PRIO_PROCESS)) [Looks];
  141 setpriority Each Full (which: Int32, who: IdIf(0, PRIO_PROCESS), prio: Int32);
  142 sched_setparam Each Full (pid: Id, param: In(Fixed(4)));
  143 sched_getparam Input Full (pid: Id, param: Out(Fixed(4))) [Looks];
  144 sched_setscheduler Each Full (pid: Id, policy: Int32, param: In(Fixed(4)));
  145 sched_getscheduler Input Full (pid: Id) [Looks];
  146 sched_get_priority_max Input Full (policy: Int32) [Looks];
  147 sched_get_priority_min Input Full (policy: Int32) [Looks];
  148 sched_rr_get_interval Input Full (pid: Id, tp: Out(Fixed(16))) [Looks];
  157 prctl Local Partial (option: Int32, arg2: ByCommand, arg3: Unused, arg4: Unused, arg5: Unused)
    "Only the options listed below; any other one is refused with EINVAL. arg3 to arg5 reach the kernel but are \
     not compared, for variadic callers leave anything in them.";
  158 arch_prctl Local Partial (code: Int32, addr: ByCommand)
    "Only the codes listed below; the agent owns GS, and shadow stacks cannot follow rewritten code.";
  160 setrlimit Input Partial (resource: Int32, rlim: In(Fixed(16)))
    "Limits of memory hold in every replica, the others in the leader and in who takes over from it.";
  186 gettid Input Full () -> Id [Looks, Unordered, Prompt];
  200 tkill Lifecycle Full (tid: Id, sig: Int32) [Soon, Signals];
  202 futex Local Partial (uaddr: Special, op: Int32, val: Int32, timeout: ByCommand, uaddr2: FutexSecond(1), val3: FutexThird(1)) [Interruptible]
    "In a follower a wait may return early and a wake may wake all, both of which futex allows. PI operations need \
     equal thread ids in all replicas, that is, pid namespaces.";
  203 sched_setaffinity Input Partial (pid: Id, cpusetsize: Int32, mask: In(Arg(1)))
    "Binds the leader's thread, and that of who takes over from it; followers keep their own CPUs. Not repeated \
     for a thread of another process, nor for CPUs from 1024 on.";
  204 sched_getaffinity Input Full (pid: Id, cpusetsize: Int32, mask: Out(Ret(1))) [Looks, Unordered];
  218 set_tid_address Lifecycle Full (tidptr: Special) -> Id;
  219 restart_syscall Lifecycle Full ();
  231 exit_group Lifecycle Full (status: Int32);
  234 tgkill Lifecycle Full (tgid: Id, tid: Id, sig: Int32) [Soon, Signals];
  247 waitid Lifecycle Full (which: Int32, pid: Int32, infop: OutAlways(Fixed(28)), options: Int32, rusage: Out(Fixed(144))) [Interruptible];
  251 ioprio_set Each Full (which: Int32, who: IdIf(0, IOPRIO_WHO_PROCESS), ioprio: Int32);
  252 ioprio_get Input Full (which: Int32, who: IdIf(0, IOPRIO_WHO_PROCESS)) [Looks];
  273 set_robust_list Local Full (head: Addr, len: Int);
  274 get_robust_list Input Full (pid: Id, head_ptr: Out(Fixed(8)), len_ptr: Out(Fixed(8))) [Looks];
  297 rt_tgsigqueueinfo Lifecycle Full (tgid: Id, tid: Id, sig: Int32, info: Siginfo) [Signals];
  302 prlimit64 Input Partial (pid: Id, resource: Int32, new_limit: In(Fixed(16)), old_limit: Out(Fixed(16))) [Soon]
    "As setrlimit; of another process's new limits, those that are no limits of memory are not repeated when a \
     follower takes over.";
  309 getcpu Input Full (cpu: Out(Fixed(4)), node: Out(Fixed(4)), tcache: Unused) [Looks, Unordered, Prompt];
  314 sched_setattr Each Full (pid: Id, attr: In(Word(1)), flags: Int32);
  315 sched_getattr Input Full (pid: Id, attr: Out(Arg(2)), size: Int32, flags: Int32) [Looks];
  317 seccomp Local Partial (operation: Int32, flags: Int32, args: Special)
    "The agent evaluates the program's filters. Refused with EINVAL: SECCOMP_FILTER_FLAG_NEW_LISTENER, and in order \
     clocks SECCOMP_FILTER_FLAG_TSYNC where there are other threads (run with --order serial). What libc asks the vDSO \
     without Geryon (clock_gettime, gettimeofday, time, getcpu) is not filtered. /proc/self/status shows Geryon's own filter.";
  322 execveat Lifecycle Full (dirfd: Fd, pathname: Path, argv: Strings, envp: Strings, flags: Int32);
  424 pidfd_send_signal Lifecycle Partial (pidfd: Fd, sig: Int32, info: Siginfo, flags: Int32) [Signals]
    "Works for processes outside; a replica's own processes are reached only in the leader: use kill.";
  434 pidfd_open Input Partial (pid: Id, flags: Int32)
    "Names the leader's process; who takes over opens it again, for its own. One that is on its way in a socket then does \
     not follow.";
  444 landlock_create_ruleset Input Full (attr: In(Arg(1)), size: Int, flags: Int32);
  445 landlock_add_rule Input Full (ruleset_fd: Fd, rule_type: Int32, rule_attr: In(Fixed(12)), flags: Int32)
    "Of a network rule's 16 bytes the last 4 are always zero and not compared.";
  446 landlock_restrict_self Local Partial (ruleset_fd: Fd, flags: Int32)
    "Every replica's thread is restricted; a replica that is repaired later by copying keeps the restriction.";
  449 futex_waitv Local Partial (waiters: Special, nr_futexes: Int32, flags: Int32, timeout: In(Fixed(16)), clockid: Int32) [Interruptible]
    "Of words that other processes share each replica has its own result, with clocks.";
  454 futex_wake Local Partial (uaddr: Special, mask: Int, nr: Int32, flags: Int32)
    "As futex_waitv.";
  455 futex_wait Local Partial (uaddr: Special, val: Int, mask: Int, flags: Int32, timeout: In(Fixed(16)), clockid: Int32) [Interruptible]
    "As futex_waitv.";
  456 futex_requeue Local Partial (waiters: Special, flags: Int32, nr_wake: Int32, nr_requeue: Int32)
    "As futex_waitv.";
}

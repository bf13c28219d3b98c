//! Commands of the other multiplexed calls.

use crate::row::{Command, Kind::*, Len::*};

commands! { pub(super) FCNTL:
  0 F_DUPFD Input (Int32);
  1 F_GETFD Input (Unused);
  2 F_SETFD Input (Int32);
  3 F_GETFL Input (Unused);
  4 F_SETFL Input (Int32);
  5 F_GETLK Input (FlockBack(false));
  6 F_SETLK Output (Flock(false));
  7 F_SETLKW Output (Flock(false));
  8 F_SETOWN Input (Id);
  9 F_GETOWN Input (Unused);
  10 F_SETSIG Input (Int32);
  11 F_GETSIG Input (Unused);
  15 F_SETOWN_EX Input (InId(8, 4));
  16 F_GETOWN_EX Input (Out(Fixed(8)));
  17 F_GETOWNER_UIDS Input (Out(Fixed(8)));
  36 F_OFD_GETLK Input (FlockBack(true));
  37 F_OFD_SETLK Output (Flock(true));
  38 F_OFD_SETLKW Output (Flock(true));
  1024 F_SETLEASE Output (Int32);
  1025 F_GETLEASE Input (Unused);
  1026 F_NOTIFY Input (Int32);
  1027 F_DUPFD_QUERY Input (Fd);
  1028 F_CREATED_QUERY Input (Unused);
  1030 F_DUPFD_CLOEXEC Input (Int32);
  1031 F_SETPIPE_SZ Input (Int32);
  1032 F_GETPIPE_SZ Input (Unused);
  1033 F_ADD_SEALS Output (Int32);
  1034 F_GET_SEALS Input (Unused);
  1035 F_GET_RW_HINT Input (Out(Fixed(8)));
  1036 F_SET_RW_HINT Input (In(Fixed(8)));
  1037 F_GET_FILE_RW_HINT Input (Out(Fixed(8)));
  1038 F_SET_FILE_RW_HINT Input (In(Fixed(8)));
}

commands! { pub(super) PRCTL:
  1 PR_SET_PDEATHSIG Local (Int) "Sent when the parent's process ends, not its thread; kept when the process changes its user.";
  2 PR_GET_PDEATHSIG Local (Out(Fixed(4)));
  3 PR_GET_DUMPABLE Local (Unused);
  4 PR_SET_DUMPABLE Local (Int32) "Without CAP_SYS_PTRACE the flag is \
    remembered and not set, since the monitor could not reach the process any more; its limit for cores is 1 while \
    it is 0.";
  7 PR_GET_KEEPCAPS Local (Unused);
  8 PR_SET_KEEPCAPS Local (Int32);
  13 PR_GET_TIMING Local (Unused);
  14 PR_SET_TIMING Local (Int32);
  15 PR_SET_NAME Local (Path);
  16 PR_GET_NAME Input (Out(Fixed(16))) "Another thread may have given it, by a file below /proc.";
  21 PR_GET_SECCOMP Local (Unused) "The program's own mode: Geryon's filter is not shown.";
  22 PR_SET_SECCOMP Local (Int32) "See seccomp.";
  23 PR_CAPBSET_READ Local (Int32);
  24 PR_CAPBSET_DROP Local (Int32);
  25 PR_GET_TSC Refused (Addr) "Geryon owns the time-stamp counter's setting.";
  26 PR_SET_TSC Refused (Int32) "Geryon owns the time-stamp counter's setting.";
  27 PR_GET_SECUREBITS Local (Unused);
  28 PR_SET_SECUREBITS Local (Int32);
  29 PR_SET_TIMERSLACK Local (Int);
  30 PR_GET_TIMERSLACK Input (Unused);
  31 PR_TASK_PERF_EVENTS_DISABLE Local (Unused);
  32 PR_TASK_PERF_EVENTS_ENABLE Local (Unused);
  33 PR_MCE_KILL Local (Int32);
  34 PR_MCE_KILL_GET Local (Unused);
  35 PR_SET_MM Refused (Int32) "The layout is the monitor's.";
  36 PR_SET_CHILD_SUBREAPER Local (Int32);
  37 PR_GET_CHILD_SUBREAPER Local (Out(Fixed(4)));
  38 PR_SET_NO_NEW_PRIVS Local (Int32);
  39 PR_GET_NO_NEW_PRIVS Local (Unused) "Always 1: Geryon's filter needs it.";
  40 PR_GET_TID_ADDRESS Local (Out(Fixed(8)));
  41 PR_SET_THP_DISABLE Local (Int32);
  42 PR_GET_THP_DISABLE Local (Unused);
  47 PR_CAP_AMBIENT Local (Int32);
  52 PR_GET_SPECULATION_CTRL Local (Int32);
  53 PR_SET_SPECULATION_CTRL Local (Int32);
  57 PR_SET_IO_FLUSHER Local (Int32);
  58 PR_GET_IO_FLUSHER Local (Unused);
  59 PR_SET_SYSCALL_USER_DISPATCH Refused (Int32) "It would catch the agent's own calls.";
  62 PR_SCHED_CORE Refused (Int32) "Cookies of replicas would differ.";
  65 PR_SET_MDWE Refused (Int32) "Rewriting needs to make code writable for a moment.";
  66 PR_GET_MDWE Local (Unused);
  67 PR_SET_MEMORY_MERGE Refused (Int32) "Merged pages would let one memory fault hit all replicas.";
  68 PR_GET_MEMORY_MERGE Local (Unused);
  78 PR_FUTEX_HASH Local (Int32);
  0x41555856 PR_GET_AUXV Refused (Addr) "It would show the vDSO: read /proc/self/auxv or use getauxval.";
  0x53564d41 PR_SET_VMA Local (Int32);
  0x59616d61 PR_SET_PTRACER Local (Int);
}

commands! { pub(super) ARCH_PRCTL:
  0x1001 ARCH_SET_GS Refused (Addr) "The agent finds its data through GS.";
  0x1002 ARCH_SET_FS Local (Addr);
  0x1003 ARCH_GET_FS Local (Out(Fixed(8)));
  0x1004 ARCH_GET_GS Refused (Addr) "The agent finds its data through GS.";
  0x1011 ARCH_GET_CPUID Local (Unused);
  0x1012 ARCH_SET_CPUID Refused (Int32) "It would change what cpuid tells in the leader only.";
  0x1021 ARCH_GET_XCOMP_SUPP Local (Out(Fixed(8)));
  0x1022 ARCH_GET_XCOMP_PERM Local (Out(Fixed(8)));
  0x1023 ARCH_REQ_XCOMP_PERM Local (Int32);
  0x1024 ARCH_GET_XCOMP_GUEST_PERM Local (Out(Fixed(8)));
  0x1025 ARCH_REQ_XCOMP_GUEST_PERM Local (Int32);
  0x2001 ARCH_MAP_VDSO_X32 Refused (Addr) "The vDSO is hidden.";
  0x2002 ARCH_MAP_VDSO_32 Refused (Addr) "The vDSO is hidden.";
  0x2003 ARCH_MAP_VDSO_64 Refused (Addr) "The vDSO is hidden.";
  0x4001 ARCH_GET_UNTAG_MASK Local (Out(Fixed(8)));
  0x4002 ARCH_ENABLE_TAGGED_ADDR Refused (Int) "The agent does not know tagged addresses.";
  0x4003 ARCH_GET_MAX_TAG_BITS Local (Out(Fixed(8)));
  0x4004 ARCH_FORCE_TAGGED_SVA Refused (Unused) "The agent does not know tagged addresses.";
  0x5001 ARCH_SHSTK_ENABLE Refused (Int) "Rewritten code has no shadow stack.";
  0x5002 ARCH_SHSTK_DISABLE Refused (Int) "Rewritten code has no shadow stack.";
  0x5003 ARCH_SHSTK_LOCK Refused (Int) "Rewritten code has no shadow stack.";
  0x5004 ARCH_SHSTK_UNLOCK Refused (Int) "Rewritten code has no shadow stack.";
  0x5005 ARCH_SHSTK_STATUS Refused (Addr) "Rewritten code has no shadow stack.";
}

// The argument that depends on the operation is the fourth: a time, or a second number.
commands! { pub(super) FUTEX:
  0 FUTEX_WAIT Local (In(Fixed(16)));
  1 FUTEX_WAKE Local (Unused);
  2 FUTEX_FD Refused (Unused) "Not in Linux any more.";
  3 FUTEX_REQUEUE Local (Int32);
  4 FUTEX_CMP_REQUEUE Local (Int32);
  5 FUTEX_WAKE_OP Local (Int32);
  6 FUTEX_LOCK_PI Local (In(Fixed(16)));
  7 FUTEX_UNLOCK_PI Local (Unused);
  8 FUTEX_TRYLOCK_PI Local (Unused);
  9 FUTEX_WAIT_BITSET Local (In(Fixed(16)));
  10 FUTEX_WAKE_BITSET Local (Unused);
  11 FUTEX_WAIT_REQUEUE_PI Local (In(Fixed(16)));
  12 FUTEX_CMP_REQUEUE_PI Local (Int32);
  13 FUTEX_LOCK_PI2 Local (In(Fixed(16)));
}

commands! { pub(super) SHMCTL:
  0 IPC_RMID Output (Unused);
  1 IPC_SET Output (In(Fixed(112)));
  2 IPC_STAT Input (Out(Fixed(112)));
  3 IPC_INFO Input (Out(Fixed(72)));
  11 SHM_LOCK Output (Unused);
  12 SHM_UNLOCK Output (Unused);
  13 SHM_STAT Input (Out(Fixed(112)));
  14 SHM_INFO Input (Out(Fixed(48)));
  15 SHM_STAT_ANY Input (Out(Fixed(112)));
}

commands! { pub(super) SEMCTL:
  0 IPC_RMID Output (Unused);
  1 IPC_SET Output (In(Fixed(104)));
  2 IPC_STAT Input (Out(Fixed(104)));
  3 IPC_INFO Input (Out(Fixed(40)));
  11 GETPID Input (Unused);
  12 GETVAL Input (Unused);
  13 GETALL Refused (Addr) "The length is known to the kernel only: use GETVAL.";
  14 GETNCNT Input (Unused);
  15 GETZCNT Input (Unused);
  16 SETVAL Output (Int32);
  17 SETALL Refused (Addr) "The length is known to the kernel only: use SETVAL.";
  18 SEM_STAT Input (Out(Fixed(104)));
  19 SEM_INFO Input (Out(Fixed(40)));
  20 SEM_STAT_ANY Input (Out(Fixed(104)));
}

commands! { pub(super) MSGCTL:
  0 IPC_RMID Output (Unused);
  1 IPC_SET Output (In(Fixed(120)));
  2 IPC_STAT Input (Out(Fixed(120)));
  3 IPC_INFO Input (Out(Fixed(32)));
  11 MSG_STAT Input (Out(Fixed(120)));
  12 MSG_INFO Input (Out(Fixed(32)));
  13 MSG_STAT_ANY Input (Out(Fixed(120)));
}

commands! { pub(super) FSCONFIG:
  0 FSCONFIG_SET_FLAG Output (Unused);
  1 FSCONFIG_SET_STRING Output (Path);
  2 FSCONFIG_SET_BINARY Output (In(Arg(4)));
  3 FSCONFIG_SET_PATH Output (Path);
  4 FSCONFIG_SET_PATH_EMPTY Output (Path);
  5 FSCONFIG_SET_FD Output (Unused);
  6 FSCONFIG_CMD_CREATE Output (Unused);
  7 FSCONFIG_CMD_RECONFIGURE Output (Unused);
  8 FSCONFIG_CMD_CREATE_EXCL Output (Unused);
}

//! System V and POSIX message queues, semaphores; shared memory segments.

use crate::row::{Kind::*, Len::*, Row};

rows! { pub(super) IPC:
  29 shmget Output Full (key: Int32, size: Int, shmflg: Int32);
  30 shmat Memory Partial (shmid: Int32, addr: Addr, shmflg: Int32)
    "Each replica has a segment of its own; what is in it is the kernel's again when nobody has it attached any more. Refused \
     (EACCES) with --order clocks, and where a process outside of the run has it attached. SHM_REMAP is refused with EINVAL.";
  31 shmctl Output Partial (shmid: Int32, cmd: Int32, buf: ByCommand)
    "shm_nattch is 1 however often the program has it attached.";
  64 semget Output Full (key: Int32, nsems: Int32, semflg: Int32);
  65 semop Output Full (semid: Int32, sops: In(ArgTimes(2, 6)), nsops: Int32) [Interruptible];
  66 semctl Output Partial (semid: Int32, semnum: Int32, cmd: Int32, arg: ByCommand)
    "GETALL and SETALL are refused with EINVAL: use GETVAL and SETVAL for each semaphore.";
  67 shmdt Memory Full (addr: Addr);
  68 msgget Output Full (key: Int32, msgflg: Int32);
  69 msgsnd Output Full (msqid: Int32, msgp: In(ArgPlus(2, 8)), msgsz: Int, msgflg: Int32) [Interruptible];
  70 msgrcv Input Full (msqid: Int32, msgp: Out(RetPlus(2, 8)), msgsz: Int, msgtyp: Int, msgflg: Int32) [Interruptible];
  71 msgctl Output Full (msqid: Int32, cmd: Int32, buf: ByCommand);
  220 semtimedop Output Full (semid: Int32, sops: In(ArgTimes(2, 6)), nsops: Int32, timeout: In(Fixed(16))) [Interruptible];
  240 mq_open Output Full (name: Path, oflag: Int32, mode: Int32, attr: In(Fixed(64)));
  241 mq_unlink Output Full (name: Path);
  242 mq_timedsend Output Full (mqdes: Fd, msg_ptr: In(Arg(2)), msg_len: Int, msg_prio: Int32, abs_timeout: In(Fixed(16))) [Interruptible];
  243 mq_timedreceive Input Full (mqdes: Fd, msg_ptr: Out(Ret(2)), msg_len: Int, msg_prio: Out(Fixed(4)), abs_timeout: In(Fixed(16))) [Interruptible];
  244 mq_notify Input Full (mqdes: Fd, sevp: Sigevent);
  245 mq_getsetattr Input Full (mqdes: Fd, newattr: In(Fixed(64)), oldattr: Out(Fixed(64)));
}

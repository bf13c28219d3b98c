//! Calls on open descriptors: reading, writing, waiting.

use crate::row::{Kind::*, Len::*, Row};

rows! { pub(super) DESCRIPTORS:
  0 read Input Full (fd: Fd, buf: Out(Ret(2)), count: Int) [Interruptible, Transfers, SoonIfReadable];
  1 write Output Full (fd: Fd, buf: In(Arg(2)), count: Int) [Interruptible, Sends, FileIfNamed, Transfers, SoonIfRoom, WritesAgain];
  3 close Output Full (fd: Fd) [NoFile, Soon, Closes];
  5 fstat Input Full (fd: Fd, statbuf: Out(Fixed(144))) [Looks, Unordered, Prompt];
  7 poll Input Full (fds: OutAlways(ArgTimes(1, 8)), nfds: Int32, timeout: Int32) [Interruptible, Looks];
  8 lseek Input Full (fd: Fd, offset: Int, whence: Int32) [Prompt];
  16 ioctl Output Partial (fd: Fd, request: Int32, argp: ByCommand) [Interruptible, Soon]
    "Only the commands listed below; any other one is refused with ENOTTY, and the message names it.";
  17 pread64 Input Full (fd: Fd, buf: Out(Ret(2)), count: Int, offset: Int) [Interruptible, Looks, Transfers, Soon];
  18 pwrite64 Output Full (fd: Fd, buf: In(Arg(2)), count: Int, offset: Int) [Interruptible, Sends, Transfers, Soon, WritesAgain];
  19 readv Input Full (fd: Fd, iov: IovecOut(2), iovcnt: Int) [Interruptible, Transfers, SoonIfReadable];
  20 writev Output Full (fd: Fd, iov: IovecIn(2), iovcnt: Int) [Interruptible, Sends, FileIfNamed, Transfers, SoonIfRoom, WritesAgain];
  22 pipe Input Full (pipefd: Out(Fixed(8)));
  23 select Input Full (nfds: Int32, readfds: FdSet(0), writefds: FdSet(0), exceptfds: FdSet(0), timeout: OutAlways(Fixed(16))) [Interruptible, Looks];
  32 dup Input Full (oldfd: Fd) [Soon];
  33 dup2 Output Full (oldfd: Fd, newfd: Fd) [Soon, Closes];
  40 sendfile Output Full (out_fd: Fd, in_fd: Fd, offset: InOut(Fixed(8)), count: Int) [Interruptible, FileIfNamed, SoonIfRoom]
    "The file's content is the kernel's, not compared.";
  72 fcntl Input Partial (fd: Fd, cmd: Int32, arg: ByCommand) [Interruptible]
    "Only the commands listed below; any other one is refused with EINVAL. Record locks belong to the shared \
     descriptor table.";
  73 flock Output Full (fd: Fd, operation: Int32) [Interruptible];
  74 fsync Output Full (fd: Fd) [Interruptible, Synchronises];
  75 fdatasync Output Full (fd: Fd) [Synchronises];
  77 ftruncate Output Full (fd: Fd, length: Int) [Soon];
  78 getdents Input Full (fd: Fd, dirp: Out(Ret(2)), count: Int32) [Soon];
  81 fchdir Input Full (fd: Fd) [Soon];
  91 fchmod Output Full (fd: Fd, mode: Int32) [Soon];
  93 fchown Output Full (fd: Fd, owner: Int32, group: Int32) [Soon];
  138 fstatfs Input Full (fd: Fd, buf: Out(Fixed(120))) [Looks];
  187 readahead Input Full (fd: Fd, offset: Int, count: Int) [Looks];
  190 fsetxattr Output Full (fd: Fd, name: Path, value: In(Arg(3)), size: Int, flags: Int32);
  193 fgetxattr Input Full (fd: Fd, name: Path, value: Out(Ret(3)), size: Int) [Looks];
  196 flistxattr Input Full (fd: Fd, list: Out(Ret(2)), size: Int) [Looks];
  199 fremovexattr Output Full (fd: Fd, name: Path);
  213 epoll_create Input Full (size: Int32) [Soon];
  217 getdents64 Input Full (fd: Fd, dirp: Out(Ret(2)), count: Int32) [Soon];
  221 fadvise64 Input Full (fd: Fd, offset: Int, len: Int, advice: Int32) [Looks];
  232 epoll_wait Input Full (epfd: Fd, events: EpollEvents(2), maxevents: Int32, timeout: Int32) [Interruptible, LooksAtNothing];
  233 epoll_ctl Input Full (epfd: Fd, op: Int32, fd: Fd, event: EpollEvent) [Soon]
    "The 8 bytes of data are opaque and come back from the leader's set.";
  253 inotify_init Input Full ();
  254 inotify_add_watch Input Full (fd: Fd, pathname: Path, mask: Int32);
  255 inotify_rm_watch Input Full (fd: Fd, wd: Int32);
  270 pselect6 Input Full (nfds: Int32, readfds: FdSet(0), writefds: FdSet(0), exceptfds: FdSet(0), timeout: OutAlways(Fixed(16)), sigmask: SigmaskPair) [Interruptible, Looks];
  271 ppoll Input Full (fds: OutAlways(ArgTimes(1, 8)), nfds: Int32, tmo_p: OutAlways(Fixed(16)), sigmask: Sigmask, sigsetsize: Int) [Interruptible, Looks];
  275 splice Output Full (fd_in: Fd, off_in: InOut(Fixed(8)), fd_out: Fd, off_out: InOut(Fixed(8)), len: Int, flags: Int32) [Interruptible]
    "The bytes moved are the kernel's, not compared.";
  276 tee Output Full (fd_in: Fd, fd_out: Fd, len: Int, flags: Int32) [Interruptible]
    "The bytes moved are the kernel's, not compared.";
  277 sync_file_range Output Full (fd: Fd, offset: Int, nbytes: Int, flags: Int32);
  278 vmsplice Output Partial (fd: Fd, iov: IovecIn(2), nr_segs: Int, flags: Int32) [Interruptible]
    "From memory into a pipe only: bytes that a pipe's read end would put into memory do not reach the followers; \
     use readv there.";
  281 epoll_pwait Input Full (epfd: Fd, events: EpollEvents(2), maxevents: Int32, timeout: Int32, sigmask: Sigmask, sigsetsize: Int) [Interruptible, LooksAtNothing];
  282 signalfd Input Full (fd: Fd, mask: In(Arg(2)), sizemask: Int) [Soon];
  283 timerfd_create Input Full (clockid: Int32, flags: Int32) [Soon];
  284 eventfd Input Full (count: Int32) [Soon];
  285 fallocate Output Full (fd: Fd, mode: Int32, offset: Int, len: Int) [Interruptible];
  286 timerfd_settime Input Full (fd: Fd, flags: Int32, new_value: In(Fixed(32)), old_value: Out(Fixed(32))) [Soon];
  287 timerfd_gettime Input Full (fd: Fd, curr_value: Out(Fixed(32))) [Looks, Soon];
  289 signalfd4 Input Full (fd: Fd, mask: In(Arg(2)), sizemask: Int, flags: Int32) [Soon];
  290 eventfd2 Input Full (count: Int32, flags: Int32) [Soon];
  291 epoll_create1 Input Full (flags: Int32) [Soon];
  292 dup3 Output Full (oldfd: Fd, newfd: Fd, flags: Int32) [Soon, Closes];
  293 pipe2 Input Full (pipefd: Out(Fixed(8)), flags: Int32) [Soon];
  294 inotify_init1 Input Full (flags: Int32);
  295 preadv Input Full (fd: Fd, iov: IovecOut(2), iovcnt: Int, pos_l: Int, pos_h: Unused) [Interruptible, Looks, Transfers, Soon];
  296 pwritev Output Full (fd: Fd, iov: IovecIn(2), iovcnt: Int, pos_l: Int, pos_h: Unused) [Interruptible, Sends, Transfers, Soon, WritesAgain];
  300 fanotify_init Input Full (flags: Int32, event_f_flags: Int32);
  301 fanotify_mark Input Full (fanotify_fd: Fd, flags: Int32, mask: Int, dirfd: Fd, pathname: Path);
  306 syncfs Output Full (fd: Fd);
  319 memfd_create Input Full (name: Path, flags: Int32)
    "One file for all replicas; what is mapped from it follows the rules of mmap.";
  326 copy_file_range Output Full (fd_in: Fd, off_in: InOut(Fixed(8)), fd_out: Fd, off_out: InOut(Fixed(8)), len: Int, flags: Int32) [Interruptible]
    "The bytes copied are the kernel's, not compared.";
  327 preadv2 Input Full (fd: Fd, iov: IovecOut(2), iovcnt: Int, pos_l: Int, pos_h: Unused, flags: Int32) [Interruptible, Looks, Transfers];
  328 pwritev2 Output Full (fd: Fd, iov: IovecIn(2), iovcnt: Int, pos_l: Int, pos_h: Unused, flags: Int32) [Interruptible, Sends, Transfers];
  436 close_range Output Partial (first: Fd, last: Int32, flags: Int32) [Soon, Closes]
    "CLOSE_RANGE_UNSHARE is refused with EINVAL: the replicas share one descriptor table.";
  441 epoll_pwait2 Input Full (epfd: Fd, events: EpollEvents(2), maxevents: Int32, timeout: In(Fixed(16)), sigmask: Sigmask, sigsetsize: Int) [Interruptible, LooksAtNothing];
  451 cachestat Input Full (fd: Fd, cstat_range: In(Fixed(16)), cstat: Out(Fixed(40)), flags: Int32) [Looks];
}

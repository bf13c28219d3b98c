//! Calls that are answered with an errno and never executed.

use crate::row::Row;

const EPERM: u16 = 1;
const EACCES: u16 = 13;
const ENOSYS: u16 = 38;
const EOPNOTSUPP: u16 = 95;

refused! { pub(super) REFUSED:
  101 ptrace EPERM "The monitor traces the replicas: debug the program without Geryon.";
  134 uselib ENOSYS "Obsolete: use mmap.";
  139 sysfs ENOSYS "Obsolete: read /proc/filesystems.";
  154 modify_ldt ENOSYS "Segment descriptors are not replicated: 16-bit programs need a run without Geryon.";
  156 _sysctl ENOSYS "Not in Linux any more: read and write /proc/sys.";
  169 reboot EPERM "It would end the monitor as well: call it outside.";
  172 iopl EPERM "Port input and output would not pass the log: run the program without Geryon.";
  173 ioperm EPERM "Port input and output would not pass the log: run the program without Geryon.";
  174 create_module ENOSYS "Not in Linux any more.";
  175 init_module EPERM "Load modules outside.";
  176 delete_module EPERM "Unload modules outside.";
  177 get_kernel_syms ENOSYS "Not in Linux any more.";
  178 query_module ENOSYS "Not in Linux any more.";
  179 quotactl ENOSYS "Its commands have no rows yet: set quotas outside.";
  180 nfsservctl ENOSYS "Not in Linux any more.";
  181 getpmsg ENOSYS "Never in Linux.";
  182 putpmsg ENOSYS "Never in Linux.";
  183 afs_syscall ENOSYS "Never in Linux.";
  184 tuxcall ENOSYS "Never in Linux.";
  185 security ENOSYS "Never in Linux.";
  205 set_thread_area ENOSYS "Not on x86-64, as in the kernel: use arch_prctl.";
  206 io_setup ENOSYS "Completions would be written at times that the log does not see: use read, write and epoll.";
  207 io_destroy ENOSYS "See io_setup.";
  208 io_getevents ENOSYS "See io_setup.";
  209 io_submit ENOSYS "See io_setup.";
  210 io_cancel ENOSYS "See io_setup.";
  211 get_thread_area ENOSYS "Not on x86-64, as in the kernel: use arch_prctl.";
  212 lookup_dcookie ENOSYS "Not in Linux any more.";
  214 epoll_ctl_old ENOSYS "Never on x86-64: use epoll_ctl.";
  215 epoll_wait_old ENOSYS "Never on x86-64: use epoll_wait.";
  216 remap_file_pages ENOSYS "Obsolete: use mmap with MAP_FIXED for each part.";
  236 vserver ENOSYS "Never in Linux.";
  246 kexec_load EPERM "It would end the monitor as well: call it outside.";
  248 add_key ENOSYS "Key rings belong to one process and are not replicated: keep keys in files or in memory.";
  249 request_key ENOSYS "Key rings belong to one process and are not replicated: keep keys in files or in memory.";
  250 keyctl ENOSYS "Key rings belong to one process and are not replicated: keep keys in files or in memory.";
  272 unshare EPERM "The replicas share descriptors and working directory: start Geryon inside the new namespaces.";
  298 perf_event_open EACCES "It would measure the replica: run perf on the monitor from outside.";
  303 name_to_handle_at EOPNOTSUPP "Handles have no row yet; programs take this for a file system without handles.";
  304 open_by_handle_at EOPNOTSUPP "Handles have no row yet: open by path.";
  308 setns EPERM "The replicas share descriptors and working directory: start Geryon inside the namespaces.";
  310 process_vm_readv EPERM "Memory of other processes does not pass the log: use a pipe or a socket.";
  311 process_vm_writev EPERM "Memory of other processes does not pass the log: use a pipe or a socket.";
  312 kcmp ENOSYS "It would compare what is the leader's own.";
  313 finit_module EPERM "Load modules outside.";
  320 kexec_file_load EPERM "It would end the monitor as well: call it outside.";
  321 bpf EPERM "Maps and programs in the kernel are not replicated: load them outside.";
  323 userfaultfd ENOSYS "Faults are answered at times that the log does not see: switch the program's use of it off.";
  333 io_pgetevents ENOSYS "See io_setup.";
  334 rseq ENOSYS "It would show which CPU a replica runs on; libc falls back to getcpu.";
  335 uretprobe ENOSYS "Probes cannot be set in rewritten code: probe the program without Geryon.";
  336 uprobe ENOSYS "Probes cannot be set in rewritten code: probe the program without Geryon.";
  425 io_uring_setup ENOSYS "Completions would be written at times that the log does not see; programs fall back to epoll.";
  426 io_uring_enter ENOSYS "See io_uring_setup.";
  427 io_uring_register ENOSYS "See io_uring_setup.";
  435 clone3 ENOSYS "libc falls back to clone, which is supported.";
  438 pidfd_getfd EPERM "Another process's descriptors do not pass the log: send them over a Unix socket.";
  440 process_madvise EPERM "Advice for other processes is not replicated: use madvise on the own memory.";
  443 quotactl_fd ENOSYS "Its commands have no rows yet: set quotas outside.";
  447 memfd_secret ENOSYS "The monitor could not judge or copy this memory: use memfd_create.";
  448 process_mrelease EPERM "Other processes' memory is theirs: let them exit.";
  453 map_shadow_stack EOPNOTSUPP "Rewritten code has no shadow stack: run the program with it switched off \
    (GLIBC_TUNABLES=glibc.cpu.x86_shstk=off).";
  463 setxattrat ENOSYS "Use setxattr or fsetxattr, to which programs fall back.";
  464 getxattrat ENOSYS "Use getxattr or fgetxattr, to which programs fall back.";
}

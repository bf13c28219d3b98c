//! Address space.

use crate::row::{Kind::*, Row};

rows! { pub(super) MEMORY:
  9 mmap Memory Partial (addr: Addr, length: Int, prot: Int32, flags: Int32, fd: Fd, offset: Int)
    "A writable MAP_SHARED mapping of a file that is not in memory (/dev/shm, memfd_create), and of any file with --order \
     clocks, is refused with ENODEV unless --shared-files map is given. The file is mapped by the leader; each follower has an \
     object of its own, which does not see what other programs write into the file meanwhile. What replicas have stored is \
     compared at msync, fsync, munmap, execve and exit. With --order clocks one process at a time may map one, and a forked \
     child may only read what it has inherited. Refused with --verify async, --checkpoint or --variants, of devices, of huge \
     pages, and where it is mapped to be read only already by a descriptor that cannot write.";
  10 mprotect Memory Partial (addr: Addr, len: Int, prot: Int32)
    "With --order clocks a forked child cannot make writable what its parent has mapped of a file to be shared and writable (EACCES).";
  11 munmap Memory Full (addr: Addr, length: Int);
  12 brk Memory Full (addr: Addr);
  25 mremap Memory Full (old_address: Addr, old_size: Int, new_size: Int, flags: Int32, new_address: Addr);
  26 msync Output Full (addr: Addr, length: Int, flags: Int32);
  27 mincore Local Partial (addr: Addr, length: Int, vec: Addr)
    "The result is right; which pages are resident is each replica's own, so a program must not act on the vector.";
  28 madvise Memory Full (addr: Addr, length: Int, advice: Int32);
  149 mlock Local Full (addr: Addr, len: Int);
  150 munlock Local Full (addr: Addr, len: Int);
  151 mlockall Local Full (flags: Int32);
  152 munlockall Local Full ();
  237 mbind Local Full (addr: Addr, len: Int, mode: Int, nodemask: Addr, maxnode: Int, flags: Int32);
  238 set_mempolicy Local Full (mode: Int32, nodemask: Addr, maxnode: Int);
  239 get_mempolicy Local Partial (mode: Addr, nodemask: Addr, maxnode: Int, addr: Addr, flags: Int32)
    "With MPOL_F_NODE it names the node of each replica's own page, which may differ between replicas.";
  256 migrate_pages Local Full (pid: Int32, maxnode: Int, old_nodes: Addr, new_nodes: Addr);
  279 move_pages Local Partial (pid: Int32, count: Int, pages: Addr, nodes: Addr, status: Addr, flags: Int32)
    "The status is each replica's own and may differ between replicas.";
  324 membarrier Local Full (cmd: Int32, flags: Int32, cpu_id: Int32);
  325 mlock2 Local Full (addr: Addr, len: Int, flags: Int32);
  329 pkey_mprotect Memory Partial (addr: Addr, len: Int, prot: Int32, pkey: Int32)
    "As mprotect.";
  330 pkey_alloc Local Full (flags: Int32, access_rights: Int32);
  331 pkey_free Local Full (pkey: Int32);
  450 set_mempolicy_home_node Local Full (start: Addr, len: Int, home_node: Int, flags: Int);
  462 mseal Memory Full (addr: Addr, length: Int, flags: Int);
}

//! Calls that name files by path, and calls on whole file systems.

use crate::row::{Kind::*, Len::*, Row};

rows! { pub(super) FILES:
  2 open Output Full (pathname: Path, flags: Int32, mode: Int32) [Interruptible, Soon]
    "May be treated as an input call when the flags only read.";
  4 stat Input Full (pathname: Path, statbuf: Out(Fixed(144))) [Looks, Unordered, Prompt];
  6 lstat Input Full (pathname: Path, statbuf: Out(Fixed(144))) [Looks, Unordered, Prompt];
  21 access Input Full (pathname: Path, mode: Int32) [Looks, Unordered, Prompt];
  76 truncate Output Full (path: Path, length: Int) [Soon];
  79 getcwd Input Full (buf: Out(Ret(1)), size: Int) [Looks, Unordered];
  80 chdir Input Full (path: Path) [Soon];
  82 rename Output Full (oldpath: Path, newpath: Path) [Soon];
  83 mkdir Output Full (pathname: Path, mode: Int32) [Soon];
  84 rmdir Output Full (pathname: Path) [Soon];
  85 creat Output Full (pathname: Path, mode: Int32) [Interruptible, Soon];
  86 link Output Full (oldpath: Path, newpath: Path) [Soon];
  87 unlink Output Full (pathname: Path) [Soon];
  88 symlink Output Full (target: Path, linkpath: Path) [Soon];
  89 readlink Input Full (pathname: Path, buf: Out(Ret(2)), bufsiz: Int32) [Looks, Unordered, Soon];
  90 chmod Output Full (pathname: Path, mode: Int32) [Soon];
  92 chown Output Full (pathname: Path, owner: Int32, group: Int32) [Soon];
  94 lchown Output Full (pathname: Path, owner: Int32, group: Int32) [Soon];
  95 umask Input Full (mask: Int32) [Soon];
  132 utime Output Full (filename: Path, times: In(Fixed(16)));
  133 mknod Output Full (pathname: Path, mode: Int32, dev: Int32);
  136 ustat Input Full (dev: Int32, ubuf: Out(Fixed(32))) [Looks];
  137 statfs Input Full (path: Path, buf: Out(Fixed(120))) [Looks];
  155 pivot_root Output Full (new_root: Path, put_old: Path);
  161 chroot Output Full (path: Path);
  162 sync Output Full ();
  163 acct Output Full (filename: Path);
  165 mount Output Full (source: Path, target: Path, filesystemtype: Path, mountflags: Int, data: Path)
    "Binary mount data (NFS) is compared up to its first NUL only.";
  166 umount2 Output Full (target: Path, flags: Int32);
  167 swapon Output Full (path: Path, swapflags: Int32);
  168 swapoff Output Full (path: Path);
  188 setxattr Output Full (path: Path, name: Path, value: In(Arg(3)), size: Int, flags: Int32);
  189 lsetxattr Output Full (path: Path, name: Path, value: In(Arg(3)), size: Int, flags: Int32);
  191 getxattr Input Full (path: Path, name: Path, value: Out(Ret(3)), size: Int) [Looks];
  192 lgetxattr Input Full (path: Path, name: Path, value: Out(Ret(3)), size: Int) [Looks];
  194 listxattr Input Full (path: Path, list: Out(Ret(2)), size: Int) [Looks];
  195 llistxattr Input Full (path: Path, list: Out(Ret(2)), size: Int) [Looks];
  197 removexattr Output Full (path: Path, name: Path);
  198 lremovexattr Output Full (path: Path, name: Path);
  235 utimes Output Full (filename: Path, times: In(Fixed(32)));
  257 openat Output Full (dirfd: Fd, pathname: Path, flags: Int32, mode: Int32) [Interruptible, Soon]
    "May be treated as an input call when the flags only read.";
  258 mkdirat Output Full (dirfd: Fd, pathname: Path, mode: Int32) [Soon];
  259 mknodat Output Full (dirfd: Fd, pathname: Path, mode: Int32, dev: Int32) [Soon];
  260 fchownat Output Full (dirfd: Fd, pathname: Path, owner: Int32, group: Int32, flags: Int32) [Soon];
  261 futimesat Output Full (dirfd: Fd, pathname: Path, times: In(Fixed(32))) [Soon];
  262 newfstatat Input Full (dirfd: Fd, pathname: Path, statbuf: Out(Fixed(144)), flags: Int32) [Looks, Unordered, Soon];
  263 unlinkat Output Full (dirfd: Fd, pathname: Path, flags: Int32) [Soon];
  264 renameat Output Full (olddirfd: Fd, oldpath: Path, newdirfd: Fd, newpath: Path) [Soon];
  265 linkat Output Full (olddirfd: Fd, oldpath: Path, newdirfd: Fd, newpath: Path, flags: Int32) [Soon];
  266 symlinkat Output Full (target: Path, newdirfd: Fd, linkpath: Path) [Soon];
  267 readlinkat Input Full (dirfd: Fd, pathname: Path, buf: Out(Ret(3)), bufsiz: Int32) [Looks, Unordered, Soon];
  268 fchmodat Output Full (dirfd: Fd, pathname: Path, mode: Int32) [Soon];
  269 faccessat Input Full (dirfd: Fd, pathname: Path, mode: Int32) [Looks, Unordered, Soon];
  280 utimensat Output Full (dirfd: Fd, pathname: Path, times: In(Fixed(32)), flags: Int32);
  316 renameat2 Output Full (olddirfd: Fd, oldpath: Path, newdirfd: Fd, newpath: Path, flags: Int32) [Soon];
  332 statx Input Full (dirfd: Fd, pathname: Path, flags: Int32, mask: Int32, statxbuf: Out(Fixed(256))) [Looks, Unordered, Soon];
  428 open_tree Output Full (dirfd: Fd, pathname: Path, flags: Int32);
  429 move_mount Output Full (from_dirfd: Fd, from_pathname: Path, to_dirfd: Fd, to_pathname: Path, flags: Int32);
  430 fsopen Output Full (fsname: Path, flags: Int32);
  431 fsconfig Output Full (fd: Fd, cmd: Int32, key: Path, value: ByCommand, aux: Int32);
  432 fsmount Output Full (fsfd: Fd, flags: Int32, attr_flags: Int32);
  433 fspick Output Full (dirfd: Fd, pathname: Path, flags: Int32);
  437 openat2 Output Full (dirfd: Fd, pathname: Path, how: In(Arg(3)), size: Int) [Interruptible, Soon]
    "May be treated as an input call when the flags only read.";
  439 faccessat2 Input Full (dirfd: Fd, pathname: Path, mode: Int32, flags: Int32) [Looks, Unordered, Soon];
  442 mount_setattr Output Full (dirfd: Fd, pathname: Path, flags: Int32, attr: In(Arg(4)), size: Int);
  452 fchmodat2 Output Full (dirfd: Fd, pathname: Path, mode: Int32, flags: Int32);
  457 statmount Input Full (req: In(Word(0)), buf: Out(Arg(2)), bufsize: Int, flags: Int32) [Looks];
  458 listmount Input Full (req: In(Word(0)), mnt_ids: Out(RetTimes(2, 8)), nr_mnt_ids: Int, flags: Int32) [Looks];
  465 listxattrat Input Full (dirfd: Fd, pathname: Path, at_flags: Int32, list: Out(Ret(4)), size: Int) [Looks];
  466 removexattrat Output Full (dirfd: Fd, pathname: Path, at_flags: Int32, name: Path);
  467 open_tree_attr Output Full (dirfd: Fd, pathname: Path, flags: Int32, attr: In(Arg(4)), size: Int);
  468 file_getattr Input Full (dirfd: Fd, pathname: Path, attr: Out(Arg(3)), size: Int, at_flags: Int32) [Looks];
  469 file_setattr Output Full (dirfd: Fd, pathname: Path, attr: In(Arg(3)), size: Int, at_flags: Int32);
}

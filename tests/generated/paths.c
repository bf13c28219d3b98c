// Names: what is in folders, and what is said of it.
#include "calls.h"
#include <dirent.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 // (newer than the headers)
#endif

static int folder(void) { return one_in(6) ? fd() : one_in(4) ? TOP_FD : AT_FDCWD; }

static void do_stat(void) {
  const char *p = path();
  struct stat s;
  switch (below(4)) {
  case 0:
    CALL_HOW(VARIES, stat, p, at());
    break;
  case 1:
    CALL_HOW(VARIES, lstat, p, at());
    break;
  case 2:
    CALL_HOW(VARIES, newfstatat, folder(), p, at(), PICK(int, 0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, 1));
    break;
  default:
    CALL_HOW(VARIES, statx, folder(), p, PICK(int, 0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, 0x6000, 1), PICK(unsigned, 0x7ff, 0, 1u << 31), at());
  }
  p = path();
  if (lstat(p, &s) == 0)
    print("  mode %o, size %ld, links %d\n", s.st_mode, S_ISDIR(s.st_mode) ? 0 : (long)s.st_size, S_ISDIR(s.st_mode) ? 0 : (int)s.st_nlink);
}
static void do_access(void) {
  const char *p = path();
  if (one_in(2))
    CALL(access, p, below(9));
  else
    CALL(faccessat2, folder(), p, below(9), PICK(int, 0, AT_EACCESS, AT_EMPTY_PATH, 1));
}
static void do_mkdir(void) {
  const char *p = path();
  if (one_in(2))
    CALL(mkdir, p, 0700);
  else
    CALL(mkdirat, folder(), p, PICK(int, 0700, 0755, 01777));
}
static void do_remove(void) {
  const char *p = path();
  switch (below(3)) {
  case 0:
    CALL(rmdir, p);
    break;
  case 1:
    CALL(unlink, p);
    break;
  default:
    CALL(unlinkat, folder(), p, PICK(int, 0, AT_REMOVEDIR, 1));
  }
}
static void do_rename(void) {
  const char *from = path(), *to = path();
  if (one_in(2))
    CALL(rename, from, to);
  else
    CALL(renameat2, folder(), from, folder(), to, PICK(int, 0, 1, 2, 3, 8));
}
static void do_link(void) {
  const char *from = path(), *to = path();
  if (one_in(2))
    CALL(link, from, to);
  else
    CALL(linkat, folder(), from, folder(), to, PICK(int, 0, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH, 1));
}
static void do_symlink(void) {
  const char *from = path(), *to = path();
  if (one_in(2))
    CALL(symlink, from, to);
  else
    CALL(symlinkat, from, folder(), to);
}
static void do_readlink(void) {
  const char *p = path();
  if (one_in(2))
    CALL(readlink, p, at(), small());
  else
    CALL(readlinkat, folder(), p, at(), small());
}
static void do_mode(void) {
  const char *p = path();
  switch (below(5)) {
  case 0:
    CALL(chmod, p, PICK(int, 0700, 0600, 0644, 01777, 0170700));
    break;
  case 1:
    CALL(fchmodat, folder(), p, 0700);
    break;
  case 2:
    CALL(fchmodat2, folder(), p, 0700, PICK(int, 0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, 1));
    break;
  case 3:
    CALL(fchownat, folder(), p, -1, -1, PICK(int, 0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, 1));
    break;
  default:
    CALL(chown, p, -1, -1);
  }
}
static void do_truncate(void) { CALL(truncate, path(), one_in(5) ? PICK(long, -1, LONG_MAX, 1l << 40) : (long)below(20000)); }
static void do_utimes(void) {
  const char *p = path();
  long t[4] = {(long)below(1000000), PICK(long, 0, 999999999, -1, 0x3fffffff, 0x3ffffffe), -5, 100};
  memcpy(me->scratch, t, sizeof t);
  void *times = one_in(4) ? at() : me->scratch;
  switch (below(4)) {
  case 0:
    CALL(utimensat, folder(), p, times, PICK(int, 0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, 1));
    break;
  case 1:
    CALL(utimes, p, times);
    break;
  case 2:
    CALL(futimesat, folder(), p, times);
    break;
  default:
    CALL(utime, p, times);
  }
}
static void do_xattr(void) {
  const char *p = path();
  const char *name = one_in(8) ? at() : named(PICK(const char *, "user.one", "user.two", "user.", "trusted.x", "none", ""));
  switch (below(8)) {
  case 0:
    CALL(setxattr, p, name, at(), small() % 2000, below(4));
    break;
  case 1:
    CALL(fsetxattr, fd(), name, at(), small(), below(3));
    break;
  case 2:
    CALL(getxattr, p, name, at(), small());
    break;
  case 3:
    CALL(fgetxattr, fd(), name, at(), small());
    break;
  case 4:
    CALL(listxattr, p, at(), small());
    break;
  case 5:
    CALL(flistxattr, fd(), at(), small());
    break;
  case 6:
    CALL(removexattr, p, name);
    break;
  default:
    CALL(lgetxattr, p, name, at(), small());
  }
}
static void do_getdents(void) {
  if (one_in(2)) {
    CALL_HOW(VARIES | NUMBER, getdents64, fd(), at(), len());
    return;
  }
  // What is there, by names.
  struct dirent **entries;
  int n = scandir(".", &entries, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    print("  %s", entries[i]->d_name[0] > ' ' && (unsigned char)entries[i]->d_name[0] < 127 ? entries[i]->d_name : "?");
    free(entries[i]);
  }
  print("  %d entries\n", n);
  if (n >= 0)
    free(entries);
}
static void do_getcwd(void) { CALL_HOW(VARIES | NUMBER, getcwd, at(), one_in(2) ? 4096 : len()); }
static void do_chdir(void) {
  // (Upwards only to the top.)
  if (one_in(2))
    CALL(fchdir, TOP_FD);
  else
    CALL(chdir, file_path());
}
static void do_mknod(void) {
  const char *p = file_path();
  if (one_in(2))
    CALL(mknod, p, PICK(int, S_IFIFO | 0600, S_IFREG | 0600, S_IFDIR | 0600, 0600, 0170000), 0);
  else
    CALL(mknodat, folder(), p, PICK(int, S_IFIFO | 0600, S_IFSOCK | 0600, S_IFREG), 0);
}
static void do_statfs(void) { CALL_HOW(VARIES, statfs, path(), at()); }
static void do_umask(void) { CALL(umask, PICK(int, 022, 077, 0, 07777777)); }
typedef void (*action)(void);
static void do_inotify(void) {
  int n = CALL(inotify_init1, O_NONBLOCK | (one_in(8) ? 1 : 0));
  if (n < 0)
    return;
  CALL(inotify_add_watch, n, path(), PICK(int, IN_ALL_EVENTS, IN_CREATE | IN_DELETE, 0, IN_ONLYDIR | IN_MODIFY, IN_MASK_CREATE | 1));
  CALL(inotify_add_watch, n, named("."), IN_CREATE | IN_DELETE | IN_MOVE | IN_CLOSE);
  for (int i = below(4); i > 0; i--)
    PICK(action, do_mkdir, do_remove, do_rename, do_link, do_mknod)();
  CALL(inotify_rm_watch, n, PICK(int, 1, 2, 3, -1));
  CALL_HOW(VARIES | NUMBER, read, n, at(), small());
  char events[4096] __attribute__((aligned(8)));
  ssize_t got = read(n, events, sizeof events);
  for (char *at = events; got > 0 && at < events + got;) {
    struct inotify_event *e = (struct inotify_event *)at;
    print("  watch %d: %#x, name of %u\n", e->wd, e->mask, e->len);
    at += sizeof *e + e->len;
  }
  close(n);
}

const struct action path_actions[] = {
    {"stat", do_stat, 4, 0},
    {"access", do_access, 2, 0},
    {"mkdir", do_mkdir, 2, 0},
    {"remove", do_remove, 2, 0},
    {"rename", do_rename, 2, 0},
    {"link", do_link, 1, 0},
    {"symlink", do_symlink, 1, 0},
    {"readlink", do_readlink, 2, 0},
    {"mode", do_mode, 1, 0},
    {"truncate", do_truncate, 1, 0},
    {"utimes", do_utimes, 2, 0},
    {"xattr", do_xattr, 4, 0},
    {"getdents", do_getdents, 2, 0},
    {"getcwd", do_getcwd, 1, 0},
    {"chdir", do_chdir, 1, 0},
    {"mknod", do_mknod, 1, 0},
    {"statfs", do_statfs, 1, 0},
    {"umask", do_umask, 1, 0},
    {"inotify", do_inotify, 1, 0},
    {0},
};

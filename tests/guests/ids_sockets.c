// build:
// deterministic
// Proves: process ids that come with messages, sockets and locks of files: SO_PEERCRED, SCM_CREDENTIALS,
// F_GETLK.
#include "guest.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
static struct ucred peer(int fd) {
  struct ucred c;
  socklen_t n = sizeof c;
  CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 && n == sizeof c);
  return c;
}
static void send_as(int fd, pid_t pid) {
  char space[CMSG_SPACE(sizeof(struct ucred))] = {0};
  struct iovec v = {"x", 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_CREDENTIALS;
  c->cmsg_len = CMSG_LEN(sizeof(struct ucred));
  struct ucred own = {pid, getuid(), getgid()};
  memcpy(CMSG_DATA(c), &own, sizeof own);
  CHECK(sendmsg(fd, &m, 0) == 1);
}
static pid_t receive(int fd) {
  char space[256], byte;
  struct iovec v = {&byte, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  CHECK(recvmsg(fd, &m, 0) == 1);
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  CHECK(c && c->cmsg_type == SCM_CREDENTIALS);
  struct ucred from;
  memcpy(&from, CMSG_DATA(c), sizeof from);
  return from.pid;
}
int main(void) {
  int ends[2], on = 1;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  CHECK(peer(ends[0]).pid == getpid() && peer(ends[0]).uid == getuid());
  CHECK(setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
  CHECK(write(ends[1], "x", 1) == 1 && receive(ends[0]) == getpid());
  send_as(ends[1], getpid());
  CHECK(receive(ends[0]) == getpid());
  const char *path = guest_tmp("lock");
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    CHECK(fcntl(file, F_SETLK, &l) == 0);
    CHECK(peer(ends[1]).pid == getppid());
    send_as(ends[1], getpid());
    char byte;
    CHECK(read(ends[1], &byte, 1) == 1);
    _exit(0);
  }
  CHECK(receive(ends[0]) == child);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
  CHECK(fcntl(file, F_GETLK, &l) == 0 && l.l_type == F_WRLCK && l.l_pid == child);
  CHECK(write(ends[0], "x", 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(unlink(path) == 0);
  guest_ok("ids_sockets");
}

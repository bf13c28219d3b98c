// build:
// deterministic
// loses
// Proves: process ids that come with messages and sockets: SO_PEERCRED, SCM_CREDENTIALS, alone, in front of a
// descriptor, in one of several messages, and of a process that is gone.
#include "guest.h"
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/wait.h>
#define SPACE (CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int)))
static struct ucred peer(int fd) {
  struct ucred c;
  socklen_t n = sizeof c;
  CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 && n == sizeof c);
  return c;
}
static struct msghdr message(struct iovec *v, char *space, pid_t pid, int passed) {
  struct msghdr m = {.msg_iov = v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = SPACE};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_CREDENTIALS;
  c->cmsg_len = CMSG_LEN(sizeof(struct ucred));
  struct ucred own = {pid, getuid(), getgid()};
  memcpy(CMSG_DATA(c), &own, sizeof own);
  if (passed < 0) {
    m.msg_controllen = CMSG_SPACE(sizeof own);
    return m;
  }
  c = CMSG_NXTHDR(&m, c);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof passed);
  memcpy(CMSG_DATA(c), &passed, sizeof passed);
  return m;
}
static void send_as(int fd, pid_t pid, int passed) {
  char space[SPACE] = {0};
  struct iovec v = {"x", 1};
  struct msghdr m = message(&v, space, pid, passed);
  CHECK(sendmsg(fd, &m, 0) == 1);
  struct ucred after;
  memcpy(&after, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof after);
  CHECK(after.pid == pid && m.msg_control == space);
}
static pid_t sender(struct msghdr *m, int *passed) {
  pid_t pid = 0;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
    if (c->cmsg_type == SCM_CREDENTIALS)
      memcpy(&pid, CMSG_DATA(c) + offsetof(struct ucred, pid), sizeof pid);
    else if (c->cmsg_type == SCM_RIGHTS && passed)
      memcpy(passed, CMSG_DATA(c), sizeof *passed);
  }
  return pid;
}
static pid_t receive(int fd, int *passed) {
  char space[256], byte;
  struct iovec v = {&byte, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  CHECK(recvmsg(fd, &m, 0) == 1);
  return sender(&m, passed);
}
// A plain one and then one with an id: whoever is told that fewer were sent goes on with the rest.
static void several(int from, int to) {
  char space[SPACE] = {0};
  struct iovec v = {"xy", 2};
  struct mmsghdr all[3] = {{{.msg_iov = &v, .msg_iovlen = 1}, 0}, {message(&v, space, getpid(), -1), 0}};
  all[2] = all[0];
  for (int sent = 0; sent < 3;) {
    int n = sendmmsg(from, all + sent, 3 - sent, 0);
    CHECK(n > 0);
    for (int i = 0; i < n; i++)
      CHECK(all[sent + i].msg_len == 2);
    sent += n;
  }
  char spaces[3][256], bytes[3][2];
  struct iovec into[3];
  for (int i = 0; i < 3; i++) {
    into[i] = (struct iovec){bytes[i], 2};
    all[i].msg_hdr = (struct msghdr){
        .msg_iov = into + i, .msg_iovlen = 1, .msg_control = spaces[i], .msg_controllen = sizeof spaces[i]};
  }
  CHECK(recvmmsg(to, all, 3, 0, NULL) == 3);
  for (int i = 0; i < 3; i++)
    CHECK(all[i].msg_len == 2 && sender(&all[i].msg_hdr, NULL) == getpid());
}
int main(void) {
  int ends[2], packets[2], on = 1, passed = -1;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, packets) == 0);
  CHECK(peer(ends[0]).pid == getpid() && peer(ends[0]).uid == getuid());
  CHECK(setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
  CHECK(setsockopt(packets[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
  CHECK(write(ends[1], "x", 1) == 1 && receive(ends[0], NULL) == getpid());
  send_as(ends[1], getpid(), -1);
  CHECK(receive(ends[0], NULL) == getpid());
  send_as(ends[1], getpid(), ends[1]);
  CHECK(receive(ends[0], &passed) == getpid() && passed >= 0 && close(passed) == 0);
  several(packets[1], packets[0]);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK(peer(ends[1]).pid == getppid());
    send_as(ends[1], getpid(), -1);
    char byte;
    CHECK(read(ends[1], &byte, 1) == 1);
    send_as(ends[1], getpid(), -1);
    _exit(0);
  }
  CHECK(receive(ends[0], NULL) == child);
  CHECK(write(ends[0], "x", 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(receive(ends[0], NULL) == child);
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && peer(ends[1]).pid == getpid());
  guest_ok("ids_sockets");
}

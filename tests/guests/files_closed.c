// build:
// deterministic
// loses
// Proves: what is closed is closed, also behind the loss of a leader whose process has yet to end: an address is free again,
// a lock is gone, an epoll set forgets a pipe, and whoever reads a pipe comes to its end.
#include "guest.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int listens(int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(fd >= 0);
  CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0);
  return fd;
}

static int port_of(int fd) {
  struct sockaddr_in at;
  socklen_t len = sizeof at;
  CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
  return ntohs(at.sin_port);
}

static void an_address_is_free_again(void) {
  int first = listens(0), port = port_of(first);
  close(first);
  close(listens(port));
}

static void a_lock_is_gone(const char *name) {
  int fd = open(name, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
  close(fd);
  fd = open(name, O_RDWR);
  CHECK(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
  close(fd);
}

static void a_set_forgets(void) {
  int p[2], set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  CHECK(set >= 0 && pipe(p) == 0 && epoll_ctl(set, EPOLL_CTL_ADD, p[0], &event) == 0);
  CHECK(write(p[1], "x", 1) == 1 && epoll_wait(set, &event, 1, 0) == 1);
  close(p[0]);
  CHECK(epoll_wait(set, &event, 1, 0) == 0);
  close(p[1]);
  close(set);
}

static void a_pipe_ends(void) {
  int p[2];
  char c;
  CHECK(pipe(p) == 0 && write(p[1], "x", 1) == 1 && fcntl(p[0], F_SETFL, O_NONBLOCK) == 0);
  close(p[1]);
  CHECK(read(p[0], &c, 1) == 1 && read(p[0], &c, 1) == 0);
  close(p[0]);
}

int main(void) {
  for (int i = 0; i < 8; i++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      an_address_is_free_again();
      a_lock_is_gone("lock");
      a_set_forgets();
      a_pipe_ends();
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  guest_ok("files_closed");
}

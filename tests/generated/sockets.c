// Sockets: of one machine's programs, and of the loopback.
#include "calls.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { DONT = MSG_DONTWAIT | MSG_NOSIGNAL };

// A socket, more often than other descriptors.
static int socket_fd(void) {
  int f = fd();
  struct stat s;
  for (int tries = 0; tries < 3 && (fstat(f, &s) != 0 || !S_ISSOCK(s.st_mode)); tries++)
    f = fd();
  return f;
}
static void do_socketpair(void) {
  CALL(socketpair, one_in(12) ? PICK(int, 99, AF_INET, -1) : AF_UNIX,
       SOCK_NONBLOCK | PICK(int, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, 77) | FLAGS(SOCK_CLOEXEC), one_in(12) ? 5 : 0,
       one_in(4) ? at() : good());
}
static void do_socket(void) {
  // (TCP over the loopback: below, where its times do not show.)
  CALL(socket, one_in(12) ? PICK(int, 99, -1) : AF_UNIX, SOCK_NONBLOCK | PICK(int, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RAW, 77),
       one_in(12) ? 5 : 0);
}

// An address in memory of all kinds, and its length. (Never so short that the kernel makes up a name.)
static void *an_address(int nested, int *size) {
  struct sockaddr_un *name = (void *)(me->scratch + 1024);
  memset(name, 0, sizeof *name);
  name->sun_family = one_in(12) ? PICK(int, 99, AF_INET, 0) : AF_UNIX;
  strcpy(name->sun_path, PICK(const char *, "sock", "other", "dir/sock", "a", "none/x"));
  *size = one_in(8) ? PICK(int, -1, 0, 1, 3, 128, 129, 4096, INT_MAX) : (int)(offsetof(struct sockaddr_un, sun_path) + strlen(name->sun_path) + 1);
  return one_in(8) ? (nested ? nowhere_nested() : nowhere()) : name;
}
static void do_bind(void) {
  int size;
  void *a = an_address(0, &size);
  CALL(bind, socket_fd(), a, size);
}
static void do_connect(void) {
  int size;
  void *a = an_address(0, &size);
  CALL(connect, socket_fd(), a, size);
}
static void do_listen(void) { CALL(listen, socket_fd(), PICK(int, 0, 1, 5, -1)); }
static int *a_size(void) {
  *(int *)me->scratch = one_in(8) ? PICK(int, 0, -1, INT_MIN, 4096) : (int)below(150);
  return one_in(8) ? at() : (void *)me->scratch;
}
static void do_accept(void) {
  int *size = a_size();
  CALL(accept4, socket_fd(), one_in(3) ? NULL : at(), one_in(3) ? NULL : size, SOCK_NONBLOCK | FLAGS(SOCK_CLOEXEC) | (one_in(12) ? 1 : 0));
}
static void do_names(void) {
  int *size = a_size();
  if (one_in(2))
    CALL(getsockname, socket_fd(), at(), size);
  else
    CALL(getpeername, socket_fd(), at(), size);
}
static void do_shutdown(void) { CALL(shutdown, socket_fd(), below(5)); }
static void do_send(void) {
  int size = 0;
  void *a = one_in(3) ? an_address(0, &size) : NULL;
  CALL(sendto, socket_fd(), at(), len() % 20000, DONT | FLAGS(MSG_OOB, MSG_EOR, MSG_MORE) | (one_in(12) ? 0x80 : 0), a, size);
}
static void do_receive(void) {
  int *size = a_size();
  CALL(recvfrom, socket_fd(), at(), len(), MSG_DONTWAIT | FLAGS(MSG_PEEK, MSG_TRUNC) | (one_in(10) ? MSG_OOB : 0), one_in(2) ? at() : NULL,
       one_in(2) ? size : NULL);
}

// A msghdr whose parts are of all kinds.
static struct msghdr *message(int sends) {
  int count;
  vector(&count);
  struct msghdr *m = (struct msghdr *)(me->scratch + 512);
  *m = (struct msghdr){.msg_iov = (struct iovec *)me->scratch, .msg_iovlen = count < 0 ? 1 : count};
  int size;
  void *a = an_address(1, &size);
  if (one_in(4))
    m->msg_name = sends ? a : at_nested(), m->msg_namelen = sends ? size : (int)below(150);
  struct cmsghdr *c = (struct cmsghdr *)(me->scratch + 768);
  memset(c, 0, 256);
  if (sends && one_in(2)) {
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = one_in(8) ? PICK(int, 77, 3) : SCM_RIGHTS;
    int fds[3] = {fd(), fd(), fd()}, some = 1 + below(3);
    c->cmsg_len = one_in(8) ? PICK(size_t, 0, 15, 17, 4096, -1ul) : CMSG_LEN(some * sizeof(int));
    memcpy(CMSG_DATA(c), fds, sizeof fds);
    m->msg_control = c, m->msg_controllen = one_in(8) ? PICK(size_t, 1, 16, 4096, -1ul) : CMSG_SPACE(some * sizeof(int));
  } else if (!sends && one_in(2)) {
    m->msg_control = one_in(4) ? at_nested() : c, m->msg_controllen = PICK(size_t, 0, 16, 20, 24, 64, 200);
  }
  if (one_in(10))
    m->msg_iov = at_nested();
  return one_in(12) ? at() : m;
}
static void do_sendmsg(void) {
  struct msghdr *m = message(1);
  CALL(sendmsg, socket_fd(), m, DONT | FLAGS(MSG_EOR));
}
static void do_recvmsg(void) {
  struct msghdr *m = message(0);
  CALL(recvmsg, socket_fd(), m, MSG_DONTWAIT | FLAGS(MSG_PEEK, MSG_TRUNC, MSG_CMSG_CLOEXEC));
}
static void do_mmsg(void) {
  struct mmsghdr *v = (struct mmsghdr *)(me->scratch + 2048);
  struct iovec *iov = (struct iovec *)me->scratch;
  for (int i = 0; i < 3; i++) {
    // (What goes wrong behind the first message of recvmmsg the next call on the socket is told, whatever it is; and
    // Geryon asks twice where it is told that an address is none.)
    iov[i] = (struct iovec){i == 0 ? at_nested() : good(), below(300)};
    v[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = iov + i, .msg_iovlen = 1}};
  }
  long count = one_in(8) ? 0 : 1 + (long)below(3);
  long times[2] = {0, 0};
  memcpy(me->loose, times, sizeof times);
  if (one_in(2))
    CALL(sendmmsg, socket_fd(), one_in(10) ? at() : v, count, DONT);
  else
    CALL(recvmmsg, socket_fd(), one_in(10) ? at() : v, count, MSG_DONTWAIT, one_in(3) ? me->loose : NULL);
}
static const int options[] = {SO_TYPE, SO_ERROR, SO_DOMAIN, SO_PROTOCOL, SO_ACCEPTCONN, SO_SNDBUF, SO_RCVBUF, SO_REUSEADDR, SO_KEEPALIVE,
                              SO_LINGER, SO_PRIORITY, SO_RCVLOWAT, SO_BROADCAST, SO_OOBINLINE, 9999, -1};
enum { OPTIONS = sizeof options / sizeof *options };
static void do_getsockopt(void) {
  int *size = a_size();
  CALL(getsockopt, socket_fd(), one_in(8) ? PICK(int, IPPROTO_TCP, 77, -1) : SOL_SOCKET, options[below(OPTIONS)], at(), size);
}
static void do_setsockopt(void) {
  *(uint64_t *)me->scratch = below(3000);
  CALL(setsockopt, socket_fd(), one_in(8) ? PICK(int, IPPROTO_TCP, 77, -1) : SOL_SOCKET, options[below(OPTIONS)], one_in(4) ? at() : me->scratch,
       one_in(4) ? PICK(long, 0, 1, 3, -1, 4096) : PICK(long, 4, 8));
}

// A listener of an internet protocol, where nothing sleeps or is looked at too early. (Its port is not the same in each run.)
static void over_loopback(void) {
  int stream = one_in(2);
  int a = socket(AF_INET, (stream ? SOCK_STREAM : SOCK_DGRAM), 0), b = socket(AF_INET, (stream ? SOCK_STREAM : SOCK_DGRAM), 0);
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  CHECK(a >= 0 && b >= 0);
  memcpy(me->loose, &name, sizeof name);
  CALL(bind, a, me->loose, PICK(long, 16, 15, 16, 128, 129));
  *(int *)(me->loose + 64) = 16;
  CALL(getsockname, a, me->loose, me->loose + 64);
  ((struct sockaddr_in *)me->loose)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (stream)
    CALL(listen, a, 3);
  if (((struct sockaddr_in *)me->loose)->sin_port != 0)
    CALL(connect, b, me->loose, PICK(long, 16, 16, 16, 8, -1));
  int c = stream ? (int)syscall(SYS_fcntl, a, F_SETFL, O_NONBLOCK) : a;
  if (stream) {
    struct pollfd p = {a, POLLIN, 0};
    print("  a connection: %d\n", poll(&p, 1, 50));
    *(int *)(me->loose + 64) = one_in(2) ? 16 : 5;
    c = CALL(accept4, a, me->loose + 128, me->loose + 64, 0);
  }
  CALL(setsockopt, b, stream ? IPPROTO_TCP : SOL_SOCKET, stream ? TCP_NODELAY : SO_BROADCAST, good(), one_in(4) ? 3 : 4);
  unsigned many = 1 + below(2000);
  if (CALL(sendto, b, good(), many, MSG_NOSIGNAL, NULL, 0) > 0 && c >= 0) {
    struct pollfd p = {c, POLLIN, 0};
    print("  bytes: %d\n", poll(&p, 1, 10000));
    // (A segment may come in pieces.)
    CALL(recvfrom, c, at(), 1, MSG_DONTWAIT | FLAGS(MSG_PEEK), NULL, NULL);
  }
  if (c >= 0 && c != a)
    close(c);
  close(a), close(b);
}

const struct action socket_actions[] = {
    {"socketpair", do_socketpair, 3, 0},
    {"socket", do_socket, 2, 0},
    {"bind", do_bind, 2, 0},
    {"connect", do_connect, 2, 0},
    {"listen", do_listen, 1, 0},
    {"accept", do_accept, 2, 0},
    {"names", do_names, 2, 0},
    {"shutdown", do_shutdown, 1, 0},
    {"send", do_send, 4, 0},
    {"receive", do_receive, 4, 0},
    {"sendmsg", do_sendmsg, 3, 0},
    {"recvmsg", do_recvmsg, 4, 0},
    {"mmsg", do_mmsg, 2, 0},
    {"getsockopt", do_getsockopt, 2, 0},
    {"setsockopt", do_setsockopt, 1, 0},
    {"over loopback", over_loopback, 1, 0},
    {0},
};

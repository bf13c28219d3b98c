//! Sockets.

use crate::row::{Kind::*, Len::*, Row};

rows! { pub(super) SOCKETS:
  41 socket Input Full (domain: Int32, kind: Int32, protocol: Int32) [Soon];
  42 connect Output Full (sockfd: Fd, addr: SockaddrIn(2), addrlen: Int32) [Interruptible];
  43 accept Input Full (sockfd: Fd, addr: SockaddrOut(2), addrlen: InOut(Fixed(4))) [Interruptible, SoonIfReadable];
  44 sendto Output Full (sockfd: Fd, buf: In(Arg(2)), len: Int, flags: Int32, dest_addr: SockaddrIn(5), addrlen: Int32) [Interruptible, Sends, NoFile, SoonIfRoom];
  45 recvfrom Input Full (sockfd: Fd, buf: Out(Ret(2)), len: Int, flags: Int32, src_addr: SockaddrOut(5), addrlen: InOut(Fixed(4))) [Interruptible, SoonIfReadable];
  46 sendmsg Output Full (sockfd: Fd, msg: MsghdrIn, flags: Int32) [Interruptible, Sends, NoFile, SoonIfRoom];
  47 recvmsg Input Full (sockfd: Fd, msg: MsghdrOut, flags: Int32) [Interruptible, SoonIfReadable];
  48 shutdown Output Full (sockfd: Fd, how: Int32) [NoFile, Soon];
  49 bind Output Full (sockfd: Fd, addr: SockaddrIn(2), addrlen: Int32) [Soon];
  50 listen Output Full (sockfd: Fd, backlog: Int32) [Soon];
  51 getsockname Input Full (sockfd: Fd, addr: SockaddrOut(2), addrlen: InOut(Fixed(4))) [Looks];
  52 getpeername Input Full (sockfd: Fd, addr: SockaddrOut(2), addrlen: InOut(Fixed(4))) [Looks];
  53 socketpair Input Full (domain: Int32, kind: Int32, protocol: Int32, sv: OutAlways(Fixed(8))) [Soon];
  54 setsockopt Input Full (sockfd: Fd, level: Int32, optname: Int32, optval: In(Arg(4)), optlen: Int32) [Soon]
    "Options that hold pointers (SO_ATTACH_FILTER) are compared without what they point to.";
  55 getsockopt Input Full (sockfd: Fd, level: Int32, optname: Int32, optval: Out(Word(4)), optlen: InOut(Fixed(4))) [Soon]
    "Options that make the kernel write elsewhere too (TCP_ZEROCOPY_RECEIVE, SO_GET_FILTER) reach only the leader.";
  288 accept4 Input Full (sockfd: Fd, addr: SockaddrOut(2), addrlen: InOut(Fixed(4)), flags: Int32) [Interruptible, SoonIfReadable];
  299 recvmmsg Input Full (sockfd: Fd, msgvec: MmsghdrOut(2), vlen: Int32, flags: Int32, timeout: InOut(Fixed(16))) [Interruptible];
  307 sendmmsg Output Full (sockfd: Fd, msgvec: MmsghdrIn(2), vlen: Int32, flags: Int32) [Interruptible, Sends, NoFile];
}

//! The machine as a whole.

use crate::row::{Kind::*, Len::*, Row};

rows! { pub(super) SYSTEM:
  63 uname Input Full (buf: Out(Fixed(390))) [Looks, Unordered, Prompt];
  99 sysinfo Input Full (info: Out(Fixed(112))) [Looks, Unordered, Soon];
  103 syslog Output Full (action: Int32, buf: Out(Ret(2)), len: Int32);
  153 vhangup Output Full ();
  170 sethostname Output Full (name: In(Arg(1)), len: Int32);
  171 setdomainname Output Full (name: In(Arg(1)), len: Int32);
  318 getrandom Input Full (buf: Out(Ret(1)), buflen: Int, flags: Int32) [Interruptible, Looks, Unordered];
  459 lsm_get_self_attr Input Full (attr: Int32, ctx: Out(Word(2)), size: OutAlways(Fixed(4)), flags: Int32) [Looks];
  460 lsm_set_self_attr Local Full (attr: Int32, ctx: In(Arg(2)), size: Int32, flags: Int32);
  461 lsm_list_modules Input Full (ids: Out(Word(1)), size: OutAlways(Fixed(4)), flags: Int32) [Looks];
}

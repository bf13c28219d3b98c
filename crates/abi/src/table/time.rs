//! Clocks and timers.

use crate::row::{Kind::*, Len::*, Row};

rows! { pub(super) TIME:
  35 nanosleep Input Full (req: In(Fixed(16)), rem: OutAlways(Fixed(16))) [Interruptible, Looks];
  36 getitimer Input Full (which: Int32, curr_value: Out(Fixed(32))) [Looks];
  37 alarm Input Full (seconds: Int32)
    "The timer runs in the leader; one that takes over sets it for the time that is left.";
  38 setitimer Input Full (which: Int32, new_value: In(Fixed(32)), old_value: Out(Fixed(32)))
    "The timer runs in the leader; one that takes over sets it for the time that is left (of processor time: by its \
     own).";
  96 gettimeofday Input Full (tv: Out(Fixed(16)), tz: Out(Fixed(8))) [Looks, Unordered, Prompt];
  159 adjtimex Output Full (buf: InOut(Fixed(208)));
  164 settimeofday Output Full (tv: In(Fixed(16)), tz: In(Fixed(8)));
  201 time Input Full (tloc: Out(Fixed(8))) [Looks, Unordered, Prompt];
  222 timer_create Input Partial (clockid: Int32, sevp: Sigevent, timerid: OutAlways(Fixed(4)))
    "The timer exists in the leader; one that takes over creates it again, under the same id. 253 at a time.";
  223 timer_settime Input Full (timerid: Int32, flags: Int32, new_value: In(Fixed(32)), old_value: Out(Fixed(32)))
    "One that takes over sets it for the time that is left (of processor time: by its own).";
  224 timer_gettime Input Full (timerid: Int32, curr_value: Out(Fixed(32))) [Looks];
  225 timer_getoverrun Input Full (timerid: Int32) [Looks];
  226 timer_delete Input Full (timerid: Int32);
  227 clock_settime Output Full (clockid: Int32, tp: In(Fixed(16)));
  228 clock_gettime Input Full (clockid: Int32, tp: Out(Fixed(16))) [Looks, Unordered, Prompt];
  229 clock_getres Input Full (clockid: Int32, res: Out(Fixed(16))) [Looks, Unordered];
  230 clock_nanosleep Input Full (clockid: Int32, flags: Int32, request: In(Fixed(16)), remain: OutAlways(Fixed(16))) [Interruptible, Looks];
  305 clock_adjtime Output Full (clockid: Int32, buf: InOut(Fixed(208)));
}

//! PR_SET_DUMPABLE, where the monitor has no privileges: the kernel would keep it from a process of its own
//! user that is not dumpable. Then the flag is kept here, and what it is for holds as far as it can: no
//! core is dumped. (Who may look into the replica may look into the monitor, flag or not.)

use crate::gate::real;
use crate::state::private;
use geryon_abi::frame::Frame;
use geryon_abi::layout::dumpable;
use geryon_abi::table::nr;

const PR_GET_DUMPABLE: u64 = 3;
const PR_SET_DUMPABLE: u64 = 4;
const RLIMIT_CORE: u64 = 4;
/// Less than any core has; with this one the kernel starts no program either that would take it.
const NO_CORE: u64 = 1;

/// A prctl(2) that concerns this flag where it is kept here; false for any other one.
pub fn prctl(frame: &mut Frame) -> bool {
    let p = private();
    let args = frame.args();
    // The kernel looks at 32 bits of the option.
    let option = args[0] as u32 as u64;
    let concerns = matches!(option, PR_GET_DUMPABLE | PR_SET_DUMPABLE);
    if p.dumpable.get() == dumpable::KERNELS || !concerns {
        return false;
    }
    frame.rax = match (option, args[1]) {
        // (It may have changed with the process's credentials.)
        (PR_GET_DUMPABLE, _) if p.dumpable.get() == dumpable::NO => 0,
        (PR_SET_DUMPABLE, 0) => {
            if p.dumpable.get() == dumpable::YES {
                p.core_limit.set(limit_core(NO_CORE));
            }
            p.dumpable.set(dumpable::NO);
            0
        }
        _ => {
            let result = real(nr::prctl, args);
            if option == PR_SET_DUMPABLE && result == 0 {
                if p.dumpable.get() == dumpable::NO {
                    limit_core(p.core_limit.get());
                }
                p.dumpable.set(dumpable::YES);
            }
            result as u64
        }
    };
    true
}

/// Set the size that a core may have, as far as that is allowed, and give the former one.
fn limit_core(size: u64) -> u64 {
    let mut was = [0u64; 2];
    let to = was.as_mut_ptr() as u64;
    real(nr::prlimit64, [0, RLIMIT_CORE, 0, to, 0, 0]);
    let limits = [size.min(was[1]), was[1]];
    let from = limits.as_ptr() as u64;
    real(nr::prlimit64, [0, RLIMIT_CORE, from, 0, 0, 0]);
    was[0]
}

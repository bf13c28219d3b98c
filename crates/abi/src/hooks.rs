//! The functions whose entries are rewritten, with the ids that monitor and agent use.

macro_rules! hooks {
    ($($id:ident = $n:literal, $name:literal;)*) => {
        $(#[doc = concat!("Id of `", $name, "`.")] pub const $id: u16 = $n;)*
        /// Name and id of every hooked function. A name may be missing in a given libc.
        pub static HOOKS: &[(&str, u16)] = &[$(($name, $n)),*];
    };
}

hooks! {
    MUTEX_LOCK = 0, "pthread_mutex_lock";
    MUTEX_TRYLOCK = 1, "pthread_mutex_trylock";
    MUTEX_TIMEDLOCK = 2, "pthread_mutex_timedlock";
    MUTEX_CLOCKLOCK = 3, "pthread_mutex_clocklock";
    MUTEX_UNLOCK = 4, "pthread_mutex_unlock";
    COND_WAIT = 5, "pthread_cond_wait";
    COND_TIMEDWAIT = 6, "pthread_cond_timedwait";
    COND_CLOCKWAIT = 7, "pthread_cond_clockwait";
    COND_SIGNAL = 8, "pthread_cond_signal";
    COND_BROADCAST = 9, "pthread_cond_broadcast";
    RW_RDLOCK = 10, "pthread_rwlock_rdlock";
    RW_WRLOCK = 11, "pthread_rwlock_wrlock";
    RW_TRYRDLOCK = 12, "pthread_rwlock_tryrdlock";
    RW_TRYWRLOCK = 13, "pthread_rwlock_trywrlock";
    RW_TIMEDRDLOCK = 14, "pthread_rwlock_timedrdlock";
    RW_TIMEDWRLOCK = 15, "pthread_rwlock_timedwrlock";
    RW_CLOCKRDLOCK = 16, "pthread_rwlock_clockrdlock";
    RW_CLOCKWRLOCK = 17, "pthread_rwlock_clockwrlock";
    RW_UNLOCK = 18, "pthread_rwlock_unlock";
    SEM_WAIT = 19, "sem_wait";
    SEM_TRYWAIT = 20, "sem_trywait";
    SEM_TIMEDWAIT = 21, "sem_timedwait";
    SEM_CLOCKWAIT = 22, "sem_clockwait";
    SEM_POST = 23, "sem_post";
    SEM_GETVALUE = 24, "sem_getvalue";
    BARRIER_WAIT = 25, "pthread_barrier_wait";
    SPIN_LOCK = 26, "pthread_spin_lock";
    SPIN_TRYLOCK = 27, "pthread_spin_trylock";
    ONCE = 28, "pthread_once";
    CREATE = 29, "pthread_create";
    TRYJOIN = 30, "pthread_tryjoin_np";
    TIMEDJOIN = 31, "pthread_timedjoin_np";
    CLOCKJOIN = 32, "pthread_clockjoin_np";
    COND_DESTROY = 33, "pthread_cond_destroy";
    BARRIER_DESTROY = 34, "pthread_barrier_destroy";
    CANCEL = 35, "pthread_cancel";
}

/// Those whose entries are rewritten in serial order, too: who spins must not keep the turn from who holds the lock. All others
/// would only go on to their originals there (an uncontended lock and unlock took 25 ns instead of 14).
pub static SERIAL_HOOKS: &[(&str, u16)] = &[("pthread_spin_lock", SPIN_LOCK)];

/// Functions that are replaced as a whole: their first bytes are jumped to from inside, so that
/// there is no original to call.
pub static REPLACED: &[u16] = &[RW_TRYRDLOCK, SEM_TRYWAIT];

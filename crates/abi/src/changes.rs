//! Which calls whose result is an input of the program do more than look: a leader that was wrong
//! cannot leave those to its successor as if they had not happened.

const FCNTL: u32 = 72;

/// Does an input call that gave this result do more than look?
pub fn changes(nr: u32, args: &[u64; 6], result: i64) -> bool {
    if result < 0 {
        return false;
    }
    match nr {
        // What looks, or waits: stat and its kin, poll, access, uname, getcwd, readlink, clocks,
        // limits, attributes.
        4..=7 | 17 | 21 | 23 | 34..=36 | 39 | 51 | 52 | 63 | 79 | 89 | 96..=100 => false,
        102 | 104 | 107 | 108 | 110 | 111 | 121 | 124 | 127 | 136..=138 | 140 => false,
        143 | 145..=148 | 186 | 187 | 191..=196 | 201 | 204 | 221 | 224 | 225 => false,
        228..=230 | 252 | 262 | 267 | 269..=271 | 287 | 295 | 309 | 315 | 318 => false,
        327 | 332 | 439 | 451 | 457..=459 | 461 | 465 | 468 => false,
        // Epolls that report nothing.
        232 | 281 | 441 => result > 0,
        // F_GETFD, F_GETFL, F_GETLK and its kin.
        FCNTL => !matches!(args[1], 1 | 3 | 5 | 36),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::changes;

    #[test]
    fn reading_changes_the_offset_and_looking_does_not() {
        assert!(changes(0, &[3, 0, 10, 0, 0, 0], 10));
        assert!(!changes(17, &[3, 0, 10, 0, 0, 0], 10));
        assert!(!changes(0, &[3, 0, 10, 0, 0, 0], -11));
    }

    #[test]
    fn a_descriptor_s_flags_are_looked_at_or_set() {
        assert!(!changes(72, &[3, 3, 0, 0, 0, 0], 2));
        assert!(changes(72, &[3, 4, 0, 0, 0, 0], 0));
    }
}

//! The interpreter and the check against the kernel's own, and against bytes that are no program.

extern crate std;

use super::action::{Action, action_of};
use super::check::is_filter;
use super::operation::{Data, run};
use geryon_abi::layout::filter::{ENDS_PROCESS, ENDS_THREAD};
use geryon_abi::layout::filter::{Instruction, MAX_INSTRUCTIONS};
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const RET: u16 = 0x06;
const RET_ACCUMULATOR: u16 = 0x16;
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const OR: u16 = 0x44;
const IS: u16 = 0x15;
const SKIP: u16 = 0x05;
const KEEP: u16 = 0x02;
const LOAD_KEPT: u16 = 0x60;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const GETPID: u32 = 39;

const fn step(code: u16, k: u32) -> Instruction {
    branch(code, k, 0, 0)
}

const fn branch(code: u16, k: u32, yes: u8, no: u8) -> Instruction {
    Instruction { code, yes, no, k }
}

fn of(nr: u32, args: [u64; 6]) -> Data {
    let mut words = [0; 16];
    words[0] = nr;
    words[1] = super::ARCHITECTURE;
    for (i, a) in args.into_iter().enumerate() {
        words[4 + 2 * i] = a as u32;
        words[5 + 2 * i] = (a >> 32) as u32;
    }
    Data(words)
}

#[test]
fn a_program_says_something_in_the_end() {
    assert!(!is_filter(&[]));
    assert!(!is_filter(&[step(LOAD, 0)]));
    assert!(is_filter(&[step(RET, 0)]));
    assert!(is_filter(&[step(RET_ACCUMULATOR, 0)]));
    assert!(is_filter(&[step(RET, 0); MAX_INSTRUCTIONS]));
    assert!(!is_filter(&[step(RET, 0); MAX_INSTRUCTIONS + 1]));
}

#[test]
fn it_goes_forwards_and_stays_inside() {
    let skips = |by| is_filter(&[step(SKIP, by), step(RET, 0), step(RET, 0)]);
    assert!(skips(0) && skips(1));
    assert!(!skips(2) && !skips(u32::MAX) && !skips(u32::MAX - 1));
    let tests = |yes, no| is_filter(&[branch(IS, 1, yes, no), step(RET, 0)]);
    assert!(tests(0, 0) && !tests(1, 0) && !tests(0, 255));
}

#[test]
fn what_it_finds_it_has_kept() {
    assert!(is_filter(&[
        step(KEEP, 3),
        step(LOAD_KEPT, 3),
        step(RET, 0)
    ]));
    assert!(!is_filter(&[
        step(KEEP, 3),
        step(LOAD_KEPT, 4),
        step(RET, 0)
    ]));
    assert!(!is_filter(&[step(KEEP, 16), step(RET, 0)]));
    // On one way only.
    let half = [
        branch(IS, 1, 0, 1),
        step(KEEP, 3),
        step(LOAD_KEPT, 3),
        step(RET, 0),
    ];
    assert!(!is_filter(&half));
}

#[test]
fn the_gravest_of_verdicts_is_the_lowest() {
    let ranked = [
        0x8000_0000,
        0,
        0x0003_0000,
        ERRNO,
        0x7fc0_0000,
        0x7ff0_0000,
        0x7ffc_0000,
        ALLOW,
    ];
    assert!(ranked.is_sorted_by_key(|v| action_of(*v)));
    assert_eq!(Action::of(ERRNO | 0xffff), Action::Answer(-4095));
    assert_eq!(Action::of(ERRNO), Action::Answer(0));
    assert_eq!(Action::of(0x0003_0007), Action::Trap(7));
    assert_eq!(Action::of(0x1234_0000), Action::End(ENDS_PROCESS));
    assert_eq!(Action::of(5), Action::End(ENDS_THREAD));
}

fn any_instruction() -> impl Strategy<Value = Instruction> {
    (any::<u16>(), any::<u8>(), any::<u8>(), any::<u32>())
        .prop_map(|(code, yes, no, k)| branch(code, k, yes, no))
}

/// Codes that seccomp takes, and some that it does not: RET X, MOD, halves and bytes, by the index register.
const CODES: [u16; 53] = [
    0x00, 0x01, 0x20, 0x60, 0x61, 0x80, 0x81, 0x02, 0x03, 0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34,
    0x3c, 0x44, 0x4c, 0x54, 0x5c, 0x64, 0x6c, 0x74, 0x7c, 0xa4, 0xac, 0x84, 0x05, 0x15, 0x1d, 0x25,
    0x2d, 0x35, 0x3d, 0x45, 0x4d, 0x06, 0x16, 0x07, 0x87, 0x0e, 0x94, 0x9c, 0x28, 0x30, 0x40, 0xb1,
    0x21, 0x8c, 0x0d, 0x1006, 0xb4,
];
/// So many of these it takes.
const TAKEN: usize = 41;

/// One that is likely to be taken.
fn likely() -> impl Strategy<Value = Instruction> {
    let code = prop_oneof![60 => 0..TAKEN, 1 => TAKEN..CODES.len()].prop_map(|i| CODES[i]);
    let number = prop_oneof![
        8 => (0u32..16).prop_map(|n| n * 4),
        8 => 0u32..4,
        4 => 0u32..40,
        1 => any::<u32>(),
    ];
    (code, 0u8..3, 0u8..3, number).prop_map(|(code, yes, no, k)| {
        // (Where the call is made is not known here; what the program returns has to be seen.)
        let is_place = code == LOAD && (k == 8 || k == 12);
        match code {
            _ if is_place => branch(code, 16, yes, no),
            SKIP => branch(code, k % 3, yes, no),
            RET => branch(code, ERRNO | k & 0xfff, yes, no),
            RET_ACCUMULATOR => branch(AND, k | 0xf0, yes, no),
            0x60 | 0x61 | 0x02 | 0x03 => branch(code, k % 3, yes, no),
            _ => branch(code, k, yes, no),
        }
    })
}

/// A program that allows every call but getpid, and of that says a number below 4096.
fn filter() -> impl Strategy<Value = Vec<Instruction>> {
    proptest::collection::vec(likely(), 0..24).prop_map(|middle| {
        let mut program = vec![
            step(LOAD, 0),
            branch(IS, GETPID, 1, 0),
            step(RET, ALLOW),
            step(KEEP, 0),
            step(KEEP, 1),
        ];
        program.extend(middle);
        // (No jump leads beyond these.)
        program.extend([step(OR, 0), step(OR, 0)]);
        program.extend([step(AND, 0xfff), step(OR, ERRNO), step(RET_ACCUMULATOR, 0)]);
        program
    })
}

/// What the kernel makes of it.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Refused(i32),
    Returned(i64),
    Killed(i32),
}

fn kernels(program: &[Instruction], args: [u64; 6]) -> Answer {
    // SAFETY: the child makes system calls and nothing else; the shared page is unmapped at the end.
    unsafe {
        let shared = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(shared, libc::MAP_FAILED);
        let result = shared.cast::<[i64; 2]>();
        let fprog = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_ptr().cast_mut().cast(),
        };
        let pid = libc::fork();
        assert!(pid >= 0);
        if pid == 0 {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            let errno = libc::__errno_location();
            if libc::syscall(libc::SYS_seccomp, 1, 0, &raw const fprog) != 0 {
                (*result)[0] = i64::from(*errno);
                libc::_exit(1);
            }
            let [a, b, c, d, e, f] = args;
            let got = libc::syscall(libc::SYS_getpid, a, b, c, d, e, f);
            (*result)[1] = if got == -1 { -i64::from(*errno) } else { got };
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        let answer = match (*result)[0] {
            0 if libc::WIFSIGNALED(status) => Answer::Killed(libc::WTERMSIG(status)),
            0 => Answer::Returned((*result)[1]),
            errno => Answer::Refused(errno as i32),
        };
        libc::munmap(shared, 4096);
        answer
    }
}

fn ours(program: &[Instruction], args: [u64; 6]) -> Answer {
    if !is_filter(program) {
        return Answer::Refused(libc::EINVAL);
    }
    let said = run(program, &of(GETPID, args)).expect("it has been checked");
    match Action::of(said) {
        Action::Answer(result) => Answer::Returned(result),
        Action::End(ENDS_THREAD) => Answer::Killed(libc::SIGSYS),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn it_is_what_the_kernel_says(program in filter(), args in any::<[u64; 6]>()) {
        prop_assert_eq!(ours(&program, args), kernels(&program, args));
    }

    #[test]
    fn every_code_is_taken_or_refused_as_the_kernel_does(one in any_instruction(), code in 0u16..0x100, k in 0u32..70) {
        for i in [one, branch(code, k, 0, 0)] {
            let program = [step(KEEP, 0), i, step(RET, ALLOW), step(RET, ALLOW)];
            let args = [0; 6];
            let is_refused = kernels(&program, args) == Answer::Refused(libc::EINVAL);
            prop_assert_eq!(!is_filter(&program), is_refused);
        }
    }

    #[test]
    fn no_bytes_are_too_much(program in proptest::collection::vec(any_instruction(), 0..64), words in any::<[u32; 16]>()) {
        let said = run(&program, &Data(words));
        prop_assert!(!is_filter(&program) || said.is_some());
    }

    #[test]
    fn a_filter_says_something(program in filter(), words in any::<[u32; 16]>()) {
        let said = run(&program, &Data(words));
        prop_assert!(!is_filter(&program) || said.is_some());
    }
}

//! The text form of a fault: `replica=1,thread=7,when=delay:12000,target=gpr:rbx:13`.
//!
//! Four keys in any order; `replica` and `thread` are 0 when they are not there. Numbers are decimal
//! or begin with 0x.

use std::fmt;
use std::str::FromStr;

use crate::campaign::Times;
use crate::fault::{BYTE_BITS, Fault, Gpr, Target, Vector, WORD_BITS, When, Width};
use crate::parse::{ParseError, Result, number, wrong};

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            replica,
            thread,
            when,
            target,
        } = self;
        write!(
            f,
            "replica={replica},thread={thread},when={when},target={target}"
        )
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::Delay { us } => write!(f, "delay:{us}"),
            When::Event { nth } => write!(f, "event:{nth}"),
            When::Address { point, nth } => write!(f, "at:{point}:{nth}"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().name())?;
        match self {
            Target::Gpr { register, bit } => write!(f, ":{}:{bit}", register.name()),
            Target::Flags { bit } | Target::Ip { bit } => write!(f, ":{bit}"),
            Target::Vector(v) => write!(f, ":{}:{}", v.number, v.bit),
            Target::Stack { number, bit }
            | Target::Heap { number, bit }
            | Target::Data { number, bit }
            | Target::Code { number, bit }
            | Target::Log { number, bit }
            | Target::Progress { number, bit } => write!(f, ":{number}:{bit}"),
            Target::Stuck {
                register,
                value,
                samples,
            } => write!(f, ":{}:{value:#x}:{samples}", register.name()),
            Target::Slow { ms } => write!(f, ":{ms}"),
            Target::Skip | Target::Crash | Target::Stop | Target::Monitor | Target::Canary => {
                Ok(())
            }
        }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Times::Delay => f.write_str("delay"),
            Times::Event => f.write_str("event"),
            Times::Address { point, most } => write!(f, "at:{point}:{most}"),
        }
    }
}

impl FromStr for Times {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Times> {
        match text {
            "delay" => Ok(Times::Delay),
            "event" => Ok(Times::Event),
            _ => match text.parse() {
                Ok(When::Address { point, nth: most }) => Ok(Times::Address { point, most }),
                _ => wrong(format!(
                    "{text:?} is none of delay, event and at:PLACE:MOST"
                )),
            },
        }
    }
}

impl From<Times> for String {
    fn from(times: Times) -> String {
        times.to_string()
    }
}

impl TryFrom<String> for Times {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Times> {
        text.parse()
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> String {
        fault.to_string()
    }
}

impl TryFrom<String> for Fault {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Fault> {
        text.parse()
    }
}

impl FromStr for Fault {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Fault> {
        let (mut replica, mut thread, mut when, mut target) = (None, None, None, None);
        for pair in text.split(',') {
            let Some((key, value)) = pair.split_once('=') else {
                return wrong(format!("expected KEY=VALUE, found {pair:?}"));
            };
            let twice = match key {
                "replica" => replica.replace(number(value, u32::MAX)?).is_some(),
                "thread" => thread.replace(number(value, u64::MAX)?).is_some(),
                "when" => when.replace(value.parse()?).is_some(),
                "target" => target.replace(value.parse()?).is_some(),
                _ => {
                    return wrong(format!(
                        "{key:?} is none of replica, thread, when and target"
                    ));
                }
            };
            if twice {
                return wrong(format!("{key} is said twice"));
            }
        }
        let (Some(when), Some(target)) = (when, target) else {
            return wrong("when=... and target=... are needed");
        };
        Ok(Fault {
            replica: replica.unwrap_or(0),
            thread: thread.unwrap_or(0),
            when,
            target,
        })
    }
}

impl FromStr for When {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<When> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["delay", us] => Ok(When::Delay {
                us: number(us, u64::MAX)?,
            }),
            ["event", nth] => Ok(When::Event {
                nth: counted(number(nth, u64::MAX)?)?,
            }),
            ["at", point, nth] => Ok(When::Address {
                point: point.parse()?,
                nth: counted(number(nth, u64::MAX)?)?,
            }),
            _ => wrong(format!(
                "{text:?} is none of delay:MICROSECONDS, event:N and at:PLACE:N"
            )),
        }
    }
}

impl FromStr for Target {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Target> {
        let parts: Vec<&str> = text.split(':').collect();
        let byte = |n: &str, b: &str| Ok((number(n, u64::MAX)?, bit(b, BYTE_BITS)?));
        Ok(match parts[..] {
            ["gpr", name, b] => Target::Gpr {
                register: register(name)?,
                bit: bit(b, WORD_BITS)?,
            },
            ["flags", b] => Target::Flags {
                bit: bit(b, WORD_BITS)?,
            },
            ["ip", b] => Target::Ip {
                bit: bit(b, WORD_BITS)?,
            },
            ["stack", n, b] => byte(n, b).map(|(number, bit)| Target::Stack { number, bit })?,
            ["heap", n, b] => byte(n, b).map(|(number, bit)| Target::Heap { number, bit })?,
            ["data", n, b] => byte(n, b).map(|(number, bit)| Target::Data { number, bit })?,
            ["code", n, b] => byte(n, b).map(|(number, bit)| Target::Code { number, bit })?,
            ["log", n, b] => byte(n, b).map(|(number, bit)| Target::Log { number, bit })?,
            ["progress", n, b] => {
                byte(n, b).map(|(number, bit)| Target::Progress { number, bit })?
            }
            ["stuck", name, value, samples] => Target::Stuck {
                register: register(name)?,
                value: number(value, u64::MAX)?,
                samples: counted(number(samples, u32::MAX)?)?,
            },
            ["skip"] => Target::Skip,
            ["crash"] => Target::Crash,
            ["stop"] => Target::Stop,
            ["slow", ms] => Target::Slow {
                ms: number(ms, u64::MAX)?,
            },
            ["monitor"] => Target::Monitor,
            ["canary"] => Target::Canary,
            ["xmm", n, b] => vector(Width::Xmm, n, b)?,
            ["ymm", n, b] => vector(Width::Ymm, n, b)?,
            ["zmm", n, b] => vector(Width::Zmm, n, b)?,
            _ => {
                return wrong(format!(
                    "{text:?} is no target; gpr:rbx:13, heap:1234:7 and crash are some"
                ));
            }
        })
    }
}

fn vector(width: Width, number_text: &str, bit_text: &str) -> Result<Target> {
    let number = number(number_text, width.registers() - 1)?;
    let bit = bit(bit_text, width.bits())?;
    Ok(Target::Vector(Vector { width, number, bit }))
}

fn register(name: &str) -> Result<Gpr> {
    let found = Gpr::ALL.into_iter().find(|r| r.name() == name);
    found.map_or_else(
        || {
            wrong(format!(
                "{name:?} is no general register; rax and r15 are some"
            ))
        },
        Ok,
    )
}

fn bit(text: &str, bits: u32) -> Result<u32> {
    number(text, bits - 1)
}

/// What is counted from 1.
fn counted<T: PartialEq + From<u8>>(n: T) -> Result<T> {
    if n == T::from(0) {
        return wrong("0 where counting begins with 1");
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fault(text: &str) -> Fault {
        text.parse().expect("a fault")
    }

    #[test]
    fn the_example_is_read() {
        let text = "replica=1,thread=7,when=delay:12000,target=gpr:rbx:13";
        let expected = Fault {
            replica: 1,
            thread: 7,
            when: When::Delay { us: 12000 },
            target: Target::Gpr {
                register: Gpr::Rbx,
                bit: 13,
            },
        };
        assert_eq!(fault(text), expected);
        assert_eq!(expected.to_string(), text);
    }

    #[test]
    fn order_defaults_and_radix_are_free() {
        let short = fault("target=stuck:rax:0xff:3,when=at:0x401000:2");
        assert_eq!((short.replica, short.thread), (0, 0));
        assert_eq!(
            short.to_string(),
            "replica=0,thread=0,when=at:0x401000:2,target=stuck:rax:0xff:3"
        );
        let hex = fault("when=delay:0x10,target=heap:0xffffffffffffffff:7");
        assert_eq!(hex.when, When::Delay { us: 16 });
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("", "KEY=VALUE"),
            ("when=delay:1", "target"),
            ("target=crash", "when"),
            ("when=delay:1,when=delay:1,target=crash", "twice"),
            ("where=here,when=delay:1,target=crash", "where"),
            ("when=delay:-1,target=crash", "-1"),
            ("when=delay:+1,target=crash", "+1"),
            ("when=delay: 1,target=crash", " 1"),
            ("when=delay:,target=crash", "number"),
            ("when=event:0,target=crash", "begins with 1"),
            ("when=soon,target=crash", "soon"),
            ("when=at:ma in:1,target=crash", "ma in"),
            ("when=at:main:0,target=crash", "begins with 1"),
            ("when=delay:1,target=gpr:eax:1", "eax"),
            ("when=delay:1,target=gpr:rax:64", "63"),
            ("when=delay:1,target=heap:1:8", "7"),
            ("when=delay:1,target=xmm:16:0", "15"),
            ("when=delay:1,target=xmm:0:128", "127"),
            ("when=delay:1,target=zmm:32:0", "31"),
            ("when=delay:1,target=stuck:rax:0:0", "begins with 1"),
            ("when=delay:1,target=crash:1", "crash:1"),
            ("replica=4294967296,when=delay:1,target=crash", "4294967295"),
        ] {
            let error = text.parse::<Fault>().expect_err(text).to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    fn when() -> impl Strategy<Value = When> {
        prop_oneof![
            any::<u64>().prop_map(|us| When::Delay { us }),
            (1..=u64::MAX).prop_map(|nth| When::Event { nth }),
            (any::<u64>(), 0..4usize, 1..=u64::MAX).prop_map(|(address, i, nth)| {
                let texts = ["", "main+", "libc.so.6!", "libc.so.6!puts+"];
                let point = format!("{}{address:#x}", texts[i])
                    .parse()
                    .expect("a point");
                When::Address { point, nth }
            }),
        ]
    }

    fn vectors() -> impl Strategy<Value = Target> {
        (0..3usize, any::<u32>(), any::<u32>()).prop_map(|(w, n, b)| {
            let width = Width::ALL[w];
            Target::Vector(Vector {
                width,
                number: n % width.registers(),
                bit: b % width.bits(),
            })
        })
    }

    fn target() -> impl Strategy<Value = Target> {
        let register = || (0..16usize).prop_map(|i| Gpr::ALL[i]);
        let word = || 0..WORD_BITS;
        let byte = || (any::<u64>(), 0..BYTE_BITS);
        prop_oneof![
            (register(), word()).prop_map(|(register, bit)| Target::Gpr { register, bit }),
            word().prop_map(|bit| Target::Flags { bit }),
            word().prop_map(|bit| Target::Ip { bit }),
            vectors(),
            byte().prop_map(|(number, bit)| Target::Stack { number, bit }),
            byte().prop_map(|(number, bit)| Target::Heap { number, bit }),
            byte().prop_map(|(number, bit)| Target::Data { number, bit }),
            byte().prop_map(|(number, bit)| Target::Code { number, bit }),
            byte().prop_map(|(number, bit)| Target::Log { number, bit }),
            byte().prop_map(|(number, bit)| Target::Progress { number, bit }),
            (register(), any::<u64>(), 1..=u32::MAX).prop_map(|(register, value, samples)| {
                Target::Stuck {
                    register,
                    value,
                    samples,
                }
            }),
            any::<u64>().prop_map(|ms| Target::Slow { ms }),
            Just(Target::Skip),
            Just(Target::Crash),
            Just(Target::Stop),
            Just(Target::Monitor),
            Just(Target::Canary),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            (replica, thread) in any::<(u32, u64)>(), when in when(), target in target()
        ) {
            let fault = Fault { replica, thread, when, target };
            prop_assert_eq!(fault.to_string().parse(), Ok(fault));
            let json = serde_json::to_string(&fault).expect("json");
            prop_assert_eq!(serde_json::from_str::<Fault>(&json).expect("a fault"), fault);
        }

        #[test]
        fn no_text_is_too_odd(text in "[a-z=:,0-9x ]{0,60}") {
            if let Ok(fault) = text.parse::<Fault>() {
                prop_assert_eq!(fault.to_string().parse(), Ok(fault));
            }
        }
    }
}

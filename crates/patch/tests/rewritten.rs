//! Rewrites shared libraries on disk, with the smallest agent there can be, and runs real programs
//! with them: what they print must not change.

use geryon_patch::{AREA_ALIGN, AgentEntries, Emitted, Options, Plan, Site, SiteKind};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARIES: &str = "/lib/x86_64-linux-gnu";
/// Room for the agent's code in front of the trampolines.
const AGENT_BYTES: u64 = AREA_ALIGN;

/// `syscall` that comes back to rcx: the stack below the red zone keeps it meanwhile, out of the
/// way of signal frames.
const SYSCALL: [u8; 28] = [
    0x48, 0x8d, 0xa4, 0x24, 0x78, 0xff, 0xff, 0xff, // lea rsp, [rsp - 136]
    0x51, // push rcx
    0x0f, 0x05, // syscall
    0x59, // pop rcx
    0x48, 0x8d, 0xa4, 0x24, 0x88, 0, 0, 0, // lea rsp, [rsp + 136]
    0xff, 0xe1, // jmp rcx
    0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
];
const RDTSC: [u8; 3] = [0x0f, 0x31, 0xc3];
const RDRAND: [u8; 5] = [0x48, 0x0f, 0xc7, 0xf0, 0xc3];

/// How the trampolines of atomics read and write the count of those that are the program's, and what the test puts
/// there: there is no GS.
const READ_COUNT: [u8; 8] = [0x65, 0x8b, 0x0c, 0x25, 0x10, 0, 0, 0];
const ONE: [u8; 8] = [0xb9, 1, 0, 0, 0, 0x0f, 0x1f, 0];
const WRITE_COUNT: [u8; 8] = [0x65, 0x89, 0x0c, 0x25, 0x10, 0, 0, 0];
const NOTHING: [u8; 8] = [0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];

/// clone, vfork, clone3: the child has another stack or shares it.
const NEW_STACK: [u8; 3] = [56, 58, 0xb3];

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// File offset of a link-time address.
fn offset(file: &[u8], vaddr: u64) -> usize {
    headers(file)
        .filter(|h| file[*h] == 1)
        .find(|&h| (word(file, h + 16)..word(file, h + 16) + word(file, h + 32)).contains(&vaddr))
        .map(|h| (vaddr - word(file, h + 16) + word(file, h + 8)) as usize)
        .expect("in a segment")
}

fn headers(file: &[u8]) -> impl Iterator<Item = usize> {
    let (at, count) = (word(file, 32) as usize, usize::from(file[56]));
    (0..count).map(move |i| at + i * 56)
}

/// Whether a `mov eax, number` before the site loads a call that the test's agent cannot do.
fn makes_a_stack(file: &[u8], site: &Site) -> bool {
    let at = offset(file, site.vaddr);
    (5..16).any(|back| {
        let code = &file[at - back..at - back + 5];
        code[0] == 0xb8 && code[3..] == [0, 0] && NEW_STACK.contains(&code[1])
    })
}

/// Appends the area as a segment of its own, in the place of a note's program header.
fn rewrite(path: &Path, to: &Path) -> usize {
    let mut file = std::fs::read(path).expect("library");
    let plan = Plan::new(
        &file,
        &Options {
            entries: &[],
            rmw: true,
            waits: true,
            loads: true,
            asked: &[],
        },
    )
    .expect("plan");
    let end = headers(&file)
        .filter(|h| file[*h] == 1)
        .map(|h| word(&file, h + 16) + word(&file, h + 40));
    let area = end.max().expect("segments").next_multiple_of(AREA_ALIGN) + 0x10_0000;
    let mut agent = Vec::new();
    let mut add = |code: &[u8]| {
        agent.extend_from_slice(code);
        area + (agent.len() - code.len()) as u64
    };
    // The segment is loaded at a bias that only the loader knows, so absolute slots would need
    // relocations: calls through slots become direct ones instead.
    let entries = [add(&SYSCALL), add(&RDTSC), add(&RDTSC), add(&RDRAND), 0];
    let tramp = area + AGENT_BYTES;
    let Emitted {
        mut trampolines,
        writes,
        ..
    } = plan
        .emit(0, tramp, &AgentEntries::default(), None)
        .expect("emit");
    direct(&mut trampolines, tramp, &entries);

    let mut patched = 0;
    for (at, bytes) in &writes {
        let window = plan
            .windows
            .iter()
            .position(|w| w.start == *at)
            .expect("window") as u32;
        let mut sites = plan.sites.iter().filter(|s| s.window == window);
        if sites.any(|s| s.kind == SiteKind::Syscall && makes_a_stack(&file, s)) {
            continue;
        }
        // A moved call pushes an absolute address, which would need a relocation.
        let decoder = Decoder::new(
            64,
            &plan.windows[window as usize].bytes,
            DecoderOptions::NONE,
        );
        if decoder.into_iter().any(|i| i.mnemonic() == Mnemonic::Call) {
            continue;
        }
        let place = offset(&file, *at);
        file[place..place + bytes.len()].copy_from_slice(bytes);
        patched += 1;
    }
    let place = file.len().next_multiple_of(AREA_ALIGN as usize);
    file.resize(place, 0);
    agent.resize(AGENT_BYTES as usize, 0xcc);
    file.extend(agent);
    file.extend(trampolines);
    let len = (file.len() - place) as u64;

    // Loaders want segments by address: the new one goes behind the last.
    let mut table: Vec<Vec<u8>> = headers(&file).map(|h| file[h..h + 56].to_vec()).collect();
    let note = table.iter().position(|h| h[0] == 4).expect("a note");
    table.remove(note);
    let last = table.iter().rposition(|h| h[0] == 1).expect("a segment");
    let mut new = vec![1, 0, 0, 0, 5, 0, 0, 0];
    for value in [place as u64, area, area, len, len, AREA_ALIGN] {
        new.extend(value.to_le_bytes());
    }
    table.insert(last + 1, new);
    let at = word(&file, 32) as usize;
    file[at..at + table.len() * 56].copy_from_slice(&table.concat());
    // A loader may look for the note's section; sections are not needed to run.
    put(&mut file, 40, 0);
    std::fs::write(to, file).expect("write");
    patched
}

/// `call/jmp [rip + slot]` to `call/jmp target; nop`, and no count of atomics.
fn direct(code: &mut [u8], base: u64, entries: &[u64]) {
    for at in 40..code.len() - 9 {
        for (what, instead) in [(READ_COUNT, ONE), (WRITE_COUNT, NOTHING)] {
            if code[at..at + 8] == what {
                code[at..at + 8].copy_from_slice(&instead);
            }
        }
        let opcode = match code[at..at + 2] {
            [0xff, 0x25] => 0xe9,
            [0xff, 0x15] => 0xe8,
            _ => continue,
        };
        let distance = i32::from_le_bytes(code[at + 2..at + 6].try_into().expect("4 bytes"));
        let end = base + at as u64 + 6;
        let slot = end
            .wrapping_add_signed(i64::from(distance))
            .wrapping_sub(base)
            / 8;
        if slot >= 4 {
            continue;
        }
        let distance = entries[slot as usize].wrapping_sub(end - 1) as i32;
        code[at] = opcode;
        code[at + 1..at + 5].copy_from_slice(&distance.to_le_bytes());
        code[at + 5] = 0x90;
    }
}

fn run(command: &[&str], libraries: Option<&Path>) -> (Vec<u8>, bool) {
    let mut run = Command::new(command[0]);
    run.args(&command[1..]);
    if let Some(libraries) = libraries {
        run.env("LD_LIBRARY_PATH", libraries);
    }
    let output = run.output().expect("starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "{command:?} {libraries:?}: {} {text}",
        output.status
    );
    (output.stdout, output.status.success())
}

#[test]
fn programs_run_on_rewritten_libraries() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rewritten");
    std::fs::create_dir_all(&folder).expect("folder");
    for name in [
        "libc.so.6",
        "libstdc++.so.6",
        "libgomp.so.1",
        "libglib-2.0.so.0",
        "libcrypto.so.3",
    ] {
        let path = Path::new(LIBRARIES).join(name);
        if path.exists() {
            let patched = rewrite(&path, &folder.join(name));
            println!("{name}: {patched} windows");
            assert!(patched > 50 || name == "libglib-2.0.so.0");
        }
    }
    let python = "import threading,hashlib,os,subprocess,queue
q=queue.Queue()
def f(n):
    h=hashlib.sha256(str(n).encode()*1000)
    for i in range(200): h.update(bytes(i%256 for i in range(500)))
    q.put((n,h.hexdigest()))
t=[threading.Thread(target=f,args=(n,)) for n in range(8)]
[x.start() for x in t];[x.join() for x in t]
print(sorted(q.get() for _ in t))
print(subprocess.check_output(['sh','-c','echo hi; ls /usr/bin | wc -l']))
r,w=os.pipe();p=os.fork()
if p==0: os.write(w,b'child');os._exit(3)
print(os.waitpid(p,0)[1],os.read(r,9))
";
    let commands: [&[&str]; 7] = [
        &[
            "/bin/bash",
            "-c",
            "for i in 1 2 3; do echo $i | cat | sed s/1/x/; done; ls -l /usr/bin | sort | md5sum",
        ],
        &["/usr/bin/python3", "-c", python],
        &[
            "/usr/bin/sort",
            "--parallel=4",
            "/usr/share/dict/words",
            "/etc/services",
            "/etc/passwd",
        ],
        &[
            "/bin/sh",
            "-c",
            "cat /usr/lib/x86_64-linux-gnu/libc.so.6 | xz -T2 -1 | md5sum",
        ],
        &[
            "/bin/sh",
            "-c",
            "cat /usr/lib/x86_64-linux-gnu/libc.so.6 | openssl dgst -sha256",
        ],
        &[
            "/bin/sh",
            "-c",
            "gcc --version; echo 'int main(){return 0;}' | gcc -x c - -O2 -S -o -",
        ],
        &[
            "/usr/bin/perl",
            "-e",
            "print join ',', map { $_ ** 2 } 1..50",
        ],
    ];
    for command in commands {
        if !Path::new(command[0]).exists() {
            continue;
        }
        let skip = command[0].ends_with("sort") && !Path::new("/usr/share/dict/words").exists();
        let command = if skip { &command[..2] } else { command };
        let command = if skip {
            [command, &["/etc/services"]].concat()
        } else {
            command.to_vec()
        };
        if skip && !Path::new("/etc/services").exists() {
            continue;
        }
        assert_eq!(
            run(&command, None),
            run(&command, Some(&folder)),
            "{command:?}"
        );
    }
}

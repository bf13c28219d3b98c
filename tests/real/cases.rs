//! The programs: one row each. `@IN` in an argument, `$IN` in a script, is the
//! folder of inputs; each run has an empty current folder of its own.

/// One program with its arguments and what makes its result right.
pub struct Case {
    /// How the case is called.
    pub name: &'static str,
    /// Program and arguments.
    pub argv: &'static [&'static str],
    /// The input that stdin holds.
    pub stdin: Option<&'static str>,
    /// Files it writes, compared like stdout.
    pub files: &'static [&'static str],
    /// Stdout and files equal the native ones.
    pub same: bool,
    /// A shell command that must succeed; `stdout` is a file.
    pub check: &'static str,
    /// Plain loads decide: right, or stopped with a report.
    pub beyond: bool,
}

/// Orders that a program is not run in, and why.
pub const NOT_IN: &[(&str, &str, &str)] = &[(
    "x264",
    "clocks",
    "its threads look at shared words without a lock",
)];

const fn case(name: &'static str, argv: &'static [&'static str], check: &'static str) -> Case {
    Case {
        name,
        argv,
        stdin: None,
        files: &[],
        same: true,
        check,
        beyond: false,
    }
}

/// The result differs from run to run; only the check judges.
const fn free(case: Case) -> Case {
    Case {
        same: false,
        ..case
    }
}

/// Beyond what lock order can repeat.
const fn beyond(case: Case) -> Case {
    Case {
        same: false,
        beyond: true,
        ..case
    }
}

const fn reading(stdin: &'static str, case: Case) -> Case {
    Case {
        stdin: Some(stdin),
        ..case
    }
}

const fn writing(files: &'static [&'static str], case: Case) -> Case {
    Case { files, ..case }
}

const PYTHON: &str = "/usr/bin/python3";

/// All of them, in the order in which they run.
pub const CASES: &[Case] = &[
    case(
        "pbzip2_compress",
        &["pbzip2", "-p4", "-c", "@IN/text"],
        "bzip2 -dc stdout | cmp - $IN/text",
    ),
    case(
        "pbzip2_decompress",
        &["pbzip2", "-p4", "-dc", "@IN/text.pbzip2"],
        "cmp stdout $IN/text",
    ),
    reading(
        "text",
        case(
            "pbzip2_stdin",
            &["pbzip2", "-p4", "-b2"],
            "bzip2 -dc stdout | cmp - $IN/text",
        ),
    ),
    case(
        "pigz_compress",
        &["pigz", "-p4", "-n", "-c", "@IN/text"],
        "gzip -dc <stdout | cmp - $IN/text",
    ),
    case(
        "pigz_decompress",
        &["pigz", "-p4", "-dc", "@IN/text.gzip"],
        "cmp stdout $IN/text",
    ),
    case(
        "xz_compress",
        &["xz", "-T4", "-1", "--block-size=1MiB", "-c", "@IN/text"],
        "xz -dc <stdout | cmp - $IN/text",
    ),
    case(
        "xz_decompress",
        &["xz", "-T4", "-dc", "@IN/text.xz"],
        "cmp stdout $IN/text",
    ),
    case(
        "zstd_compress",
        &["zstd", "-q", "-T4", "-3", "-B1MiB", "-c", "@IN/text"],
        "zstd -q -dc stdout | cmp - $IN/text",
    ),
    case(
        "zstd_decompress",
        &["zstd", "-q", "-T4", "-dc", "@IN/text.zstd"],
        "cmp stdout $IN/text",
    ),
    case(
        "lbzip2_compress",
        &["lbzip2", "-n4", "-c", "@IN/text"],
        "bzip2 -dc stdout | cmp - $IN/text",
    ),
    case(
        "lbzip2_decompress",
        &["lbzip2", "-n4", "-dc", "@IN/text.bzip2"],
        "cmp stdout $IN/text",
    ),
    free(case(
        "ripgrep",
        &["rg", "-j4", "-c", "-u", "pthread_mutex", "/usr/include"],
        "rg -j1 -c -u pthread_mutex /usr/include | sort >native && sort stdout | cmp - native",
    )),
    writing(
        &["out.264"],
        case(
            "x264",
            &[
                "x264",
                "--threads",
                "4",
                "--preset",
                "fast",
                "--quiet",
                "-o",
                "out.264",
                "@IN/clip.y4m",
            ],
            "test $(stat -c %s out.264) -gt 20000",
        ),
    ),
    case(
        "python_hash",
        &[
            PYTHON,
            "-c",
            "import hashlib,sys\nprint(hashlib.sha256(open(sys.argv[1],'rb').read()).hexdigest())",
            "@IN/text",
        ],
        "test \"$(cat stdout)\" = \"$(sha256sum <$IN/text | cut -d' ' -f1)\"",
    ),
    case(
        "python_sqlite",
        &[PYTHON, "-c", include_str!("sqlite.py")],
        "tail -1 stdout | grep -qx done",
    ),
    case(
        "python_subprocess",
        &[PYTHON, "-c", include_str!("subprocess.py")],
        "tail -1 stdout | grep -qx done",
    ),
    case(
        "python_asyncio",
        &[PYTHON, "-c", include_str!("asyncio.py")],
        "tail -1 stdout | grep -qx done",
    ),
    case(
        "python_json",
        &[PYTHON, "-c", include_str!("json.py")],
        "tail -1 stdout | grep -qx done",
    ),
    free(case(
        "python_time_random",
        &[PYTHON, "-c", include_str!("time_random.py")],
        "tail -1 stdout | grep -qx done",
    )),
    free(case(
        "python_threads",
        &[PYTHON, "-c", include_str!("threads.py")],
        "tail -1 stdout | grep -qx done",
    )),
    case(
        "perl_words",
        &["perl", "-e", include_str!("words.pl"), "@IN/small"],
        "tail -1 stdout | grep -qx done",
    ),
    case(
        "perl_fork",
        &["perl", "-e", include_str!("fork.pl")],
        "tail -1 stdout | grep -qx done",
    ),
    case(
        "bash_pipes",
        &["bash", "-c", include_str!("pipes.sh")],
        "tail -1 stdout | grep -qx done",
    ),
    case(
        "bash_jobs",
        &["bash", "-c", include_str!("jobs.sh")],
        "tail -1 stdout | grep -qx done",
    ),
    case(
        "sshd",
        &["bash", "-c", include_str!("sshd.sh")],
        "head -1 stdout | grep -qx 'logged in'",
    ),
    case(
        "exec_chain",
        &["env", "A=1", "nice", "sh", "-c", "echo $A; nice"],
        "tail -1 stdout | grep -qxE '[0-9]+'",
    ),
    case(
        "tar_create",
        &["tar", "-C", "@IN", "-cf", "-", "tree"],
        "mkdir t; tar -C t -xf stdout; diff -r t/tree $IN/tree",
    ),
    case(
        "tar_gzip",
        &["tar", "-C", "@IN", "-czf", "out.tgz", "tree"],
        "mkdir t; tar -C t -xzf out.tgz; diff -r t/tree $IN/tree",
    ),
    reading(
        "text",
        case(
            "gzip_stdin",
            &["gzip", "-1"],
            "gzip -dc <stdout | cmp - $IN/text",
        ),
    ),
    case(
        "curl_file",
        &["curl", "-sS", "file://@IN/small"],
        "cmp stdout $IN/small",
    ),
    case(
        "git_log",
        &["git", "-C", "@IN/repo", "--no-pager", "log", "--stat"],
        "grep -c ^commit stdout | grep -qx 40",
    ),
    case(
        "git_fsck",
        &["git", "-C", "@IN/repo", "fsck", "--no-progress", "--full"],
        "true",
    ),
    case(
        "git_grep",
        &[
            "git",
            "-C",
            "@IN/repo",
            "--no-pager",
            "grep",
            "--threads=4",
            "-c",
            "to",
        ],
        "test -s stdout",
    ),
    case(
        "busybox_sh",
        &["busybox", "sh", "-c", include_str!("busybox.sh")],
        "tail -1 stdout | grep -qx done",
    ),
    case(
        "busybox_sha256sum",
        &["busybox", "sha256sum", "@IN/text"],
        "cmp stdout <(sha256sum $IN/text)",
    ),
    case(
        "sqlite3",
        &["sqlite3", "db", include_str!("bank.sql")],
        "tail -1 stdout | grep -qx done",
    ),
    case(
        "ls_find",
        &[
            "find", "@IN/tree", "-type", "f", "-size", "+8k", "-exec", "md5sum", "{}", "+",
        ],
        "test -s stdout",
    ),
    case(
        "sort_one_thread",
        &["sort", "--parallel=1", "@IN/text"],
        "cmp stdout $IN/text.sorted",
    ),
    writing(
        &["out.o"],
        case(
            "gcc",
            &[
                "bash",
                "-c",
                "echo 'int f(int x) { return x * 3; }' >f.c; gcc -O2 -c f.c -o out.o; objdump -d out.o | grep -c ret",
            ],
            "grep -qx 1 stdout",
        ),
    ),
    beyond(case(
        "beyond_sort",
        &["sort", "--parallel=4", "-S", "64M", "@IN/text"],
        "cmp stdout $IN/text.sorted",
    )),
    beyond(case(
        "beyond_python",
        &[PYTHON, "-c", include_str!("busy.py")],
        "tail -1 stdout | grep -qx done",
    )),
    beyond(case(
        "beyond_vips",
        &[
            "vips",
            "--vips-concurrency=4",
            "gaussblur",
            "@IN/picture.ppm",
            "out.ppm",
            "3",
        ],
        "vips gaussblur $IN/picture.ppm check.ppm 3; cmp <(tail -c 4500000 out.ppm) <(tail -c 4500000 check.ppm)",
    )),
    beyond(case(
        "beyond_sysbench_threads",
        &[
            "sysbench",
            "threads",
            "--threads=4",
            "--events=500",
            "--thread-yields=20",
            "--time=0",
            "run",
        ],
        "grep -q 'total number of events: *500' stdout",
    )),
    beyond(case(
        "beyond_sysbench_mutex",
        &[
            "sysbench",
            "mutex",
            "--threads=4",
            "--mutex-locks=2000",
            "--mutex-loops=50",
            "run",
        ],
        "grep -q 'total number of events: *4' stdout",
    )),
];

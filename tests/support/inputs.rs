//! Inputs for real programs, made on the fly and alike on every machine.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

/// How much the inputs hold.
pub struct Size {
    /// Length of the big text.
    pub text_bytes: usize,
    /// The synthetic clip is CIF; as long as an encoder needs to use its threads.
    pub frames: usize,
}

/// What the tests take unless told otherwise.
pub const USUAL: Size = Size {
    text_bytes: 8 << 20,
    frames: 100,
};
/// For many repetitions: still several blocks for four threads.
pub const SHORT: Size = Size {
    text_bytes: 3 << 20,
    frames: 30,
};
/// Length of the small text.
const SMALL_BYTES: usize = 256 << 10;
/// Width and height of the clip.
const CLIP: (usize, usize) = (352, 288);
/// Commits in the repository.
const COMMITS: u32 = 40;
/// Files in the tree that is packed.
const TREE_FILES: u32 = 200;
/// Named last: a folder that has it is complete.
const COMPLETE: &str = "complete-4";

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits fit") % limit
    }
}

/// Lines of made-up words, some frequent, some rare.
fn text(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut out = Vec::with_capacity(bytes);
    while out.len() < bytes {
        let most = if random.below(3) == 0 { 20_000 } else { 60 };
        let mut word = random.below(most) + 3;
        while word > 0 {
            out.push(b"etaoinshrdlucmfw"[word % 16]);
            word /= 16;
        }
        out.push(if random.below(9) == 0 { b'\n' } else { b' ' });
    }
    out.truncate(bytes - 1);
    out.push(b'\n');
    out
}

/// A moving gradient with noise and a square, in YUV4MPEG2.
fn clip(path: &Path, frames: usize) -> std::io::Result<()> {
    let (width, height) = CLIP;
    let mut out = BufWriter::new(File::create(path)?);
    let mut random = Random(77);
    writeln!(out, "YUV4MPEG2 W{width} H{height} F25:1 Ip A1:1 C420jpeg")?;
    for frame in 0..frames {
        out.write_all(b"FRAME\n")?;
        for y in 0..height {
            for x in 0..width {
                let square = x.abs_diff(frame * 7) < 30 && y.abs_diff(100 + frame) < 30;
                let luma = if square {
                    220
                } else {
                    (x + y * 2 + frame * 3) % 190
                };
                out.write_all(&[u8::try_from(luma + random.below(8)).unwrap_or(255)])?;
            }
        }
        for plane in 0..2 {
            let value = |i: usize| u8::try_from((i / 97 + frame + plane * 40) % 256);
            let chroma: Vec<u8> = (0..width * height / 4)
                .map(|i| value(i).unwrap_or(0))
                .collect();
            out.write_all(&chroma)?;
        }
    }
    out.flush()
}

/// A picture for image tools.
fn picture(path: &Path) -> std::io::Result<()> {
    let (width, height) = (1500, 1000);
    let mut random = Random(5);
    let mut bytes = format!("P6\n{width} {height}\n255\n").into_bytes();
    bytes.extend(
        (0..width * height * 3).map(|i| u8::try_from(i / 3 % 200 + random.below(50)).unwrap_or(0)),
    );
    fs::write(path, bytes)
}

fn tree(path: &Path) -> std::io::Result<()> {
    for i in 0..TREE_FILES {
        let folder = path.join(format!("folder-{}", i % 7));
        fs::create_dir_all(&folder)?;
        let length = usize::try_from(i * i % 40_000).expect("it is small") + 1;
        fs::write(
            folder.join(format!("file-{i}")),
            text(length, u64::from(i) + 1),
        )?;
    }
    std::os::unix::fs::symlink("folder-1/file-1", path.join("link"))
}

/// What a shell makes best: compressed forms and a repository.
const SCRIPT: &str = r#"
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
for tool in bzip2 gzip; do $tool -k -c text > text.$tool; done
pbzip2 -p2 -c text > text.pbzip2
xz -T2 -1 --block-size=1MiB -c text > text.xz
zstd -q -3 -c text > text.zstd
LC_ALL=C sort text > text.sorted
git init -q repo
cd repo
i=0
while [ $i -lt $1 ]; do
  i=$((i+1))
  head -c $((i * 1000)) ../small > file-$((i % 5))
  git add .
  GIT_AUTHOR_DATE="$((1700000000 + i)) +0000" GIT_COMMITTER_DATE="$((1700000000 + i)) +0000" \
    git commit -q -m "commit $i"
done
"#;

/// Makes all inputs in `folder` unless they are complete. Of several tests that want them one does.
pub fn make(folder: &Path, size: &Size) {
    let made = || -> std::io::Result<()> {
        let lock = File::create(folder.with_extension("lock"))?;
        lock.lock()?;
        if folder.join(COMPLETE).exists() {
            return Ok(());
        }
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        fs::write(folder.join("text"), text(size.text_bytes, 1))?;
        fs::write(folder.join("small"), text(SMALL_BYTES, 2))?;
        clip(&folder.join("clip.y4m"), size.frames)?;
        picture(&folder.join("picture.ppm"))?;
        tree(&folder.join("tree"))?;
        let count = COMMITS.to_string();
        let result = Command::new("bash")
            .args(["-c", SCRIPT, "make", &count])
            .current_dir(folder)
            .output()?;
        assert!(
            result.status.success(),
            "{}",
            String::from_utf8_lossy(&result.stderr)
        );
        fs::write(folder.join(COMPLETE), "")
    };
    made().unwrap_or_else(|e| panic!("cannot make inputs in {}: {e}", folder.display()));
}

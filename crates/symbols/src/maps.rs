//! `/proc/PID/maps`, parsed once and searched by address.

use std::path::PathBuf;

/// What the kernel appends to the path of a file that has been unlinked.
const DELETED_SUFFIX: &str = " (deleted)";

/// One line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind the mapping.
    pub end: u64,
    /// May be read.
    pub readable: bool,
    /// May be written.
    pub writable: bool,
    /// May be executed.
    pub executable: bool,
    /// Stores go to the object behind it (`MAP_SHARED`).
    pub shared: bool,
    /// Offset of `start` in the file.
    pub offset: u64,
    /// Device of the file, as major and minor number.
    pub device: (u32, u32),
    /// Inode of the file; 0 for memory without a file.
    pub inode: u64,
    /// Path, or a name in brackets such as `[vdso]`, without the kernel's mark for deleted files.
    pub name: Option<String>,
    /// The file has been unlinked (or never had a name, as a memfd).
    pub deleted: bool,
}

impl Mapping {
    /// Whether a file lies behind it.
    pub fn is_file(&self) -> bool {
        self.inode != 0 && self.path().is_some()
    }

    /// The path, where the name is one.
    pub fn path(&self) -> Option<PathBuf> {
        let name = self.name.as_deref()?;
        name.starts_with('/').then(|| PathBuf::from(name))
    }

    /// The last component of the name.
    pub fn short_name(&self) -> Option<&str> {
        let name = self.name.as_deref()?;
        Some(name.rsplit('/').next().unwrap_or(name))
    }

    fn same_file(&self, other: &Mapping) -> bool {
        self.device == other.device && self.inode == other.inode && self.name == other.name
    }

    fn parse(line: &str) -> Option<Mapping> {
        // Five fields parted by one space each, then padding, then a name that may hold spaces.
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?.as_bytes();
        let offset = fields.next()?;
        let (major, minor) = fields.next()?.split_once(':')?;
        let inode = fields.next()?;
        let name = fields.next().unwrap_or("").trim_start_matches(' ');
        let deleted = name.ends_with(DELETED_SUFFIX);
        let name = name.strip_suffix(DELETED_SUFFIX).unwrap_or(name);
        if permissions.len() != 4 {
            return None;
        }
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let mapping = Mapping {
            start: hex(start)?,
            end: hex(end)?,
            readable: permissions[0] == b'r',
            writable: permissions[1] == b'w',
            executable: permissions[2] == b'x',
            shared: permissions[3] == b's',
            offset: hex(offset)?,
            device: (
                u32::from_str_radix(major, 16).ok()?,
                u32::from_str_radix(minor, 16).ok()?,
            ),
            inode: inode.parse().ok()?,
            // The kernel escapes line feeds, and only those.
            name: (!name.is_empty()).then(|| name.replace("\\012", "\n")),
            deleted,
        };
        (mapping.start < mapping.end).then_some(mapping)
    }
}

/// The address space of a process, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    mappings: Vec<Mapping>,
}

impl Maps {
    /// Parses the text of `/proc/PID/maps`; a line that is none is left out.
    pub fn parse(text: &str) -> Maps {
        let mut mappings: Vec<Mapping> = text.lines().filter_map(Mapping::parse).collect();
        mappings.sort_by_key(|mapping| mapping.start);
        Maps { mappings }
    }

    /// Reads the maps of a process (or of a thread, by its tid).
    pub fn of_process(pid: i32) -> std::io::Result<Maps> {
        let bytes = std::fs::read(format!("/proc/{pid}/maps"))?;
        Ok(Maps::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// The mapping that holds `address`.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let behind = self
            .mappings
            .partition_point(|mapping| mapping.start <= address);
        let mapping = &self.mappings[behind.checked_sub(1)?];
        (address < mapping.end).then_some(mapping)
    }

    /// Whether instructions may be fetched from `address`.
    pub fn is_executable(&self, address: u64) -> bool {
        self.find(address).is_some_and(|mapping| mapping.executable)
    }

    /// All mappings.
    pub fn iter(&self) -> std::slice::Iter<'_, Mapping> {
        self.mappings.iter()
    }

    /// The mappings of the same file that make up one loaded image around `of`. A file that is
    /// loaded twice gives two images: each begins with a mapping of offset 0.
    pub(crate) fn image<'a>(&'a self, of: &Mapping) -> Vec<&'a Mapping> {
        let mut image = Vec::new();
        for mapping in self.mappings.iter().filter(|mapping| mapping.same_file(of)) {
            if mapping.offset == 0 {
                if mapping.start > of.start {
                    break;
                }
                image.clear();
            }
            image.push(mapping);
        }
        image
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
555555554000-555555555000 r--p 00000000 fe:01 42                         /usr/bin/a program
555555555000-555555556000 r-xp 00001000 fe:01 42                         /usr/bin/a program
7ffff7d00000-7ffff7d01000 rw-p 00000000 00:00 0 
7ffff7e00000-7ffff7e01000 r-xs 00003000 00:05 77                         /tmp/x\\012y.so (deleted)
not a line
7ffff7fc9000-7ffff7fcb000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    #[test]
    fn parses_every_kind_of_line() {
        let maps = Maps::parse(TEXT);
        assert_eq!(maps.iter().count(), 6);
        let code = maps.find(0x5555_5555_5fff).unwrap();
        assert_eq!(code.name.as_deref(), Some("/usr/bin/a program"));
        assert_eq!(code.short_name(), Some("a program"));
        assert_eq!(
            (code.offset, code.inode, code.device),
            (0x1000, 42, (0xfe, 1))
        );
        assert!(code.executable && code.readable && !code.writable && !code.shared);
        assert!(code.is_file());
        let anonymous = maps.find(0x7fff_f7d0_0000).unwrap();
        assert!(anonymous.name.is_none() && !anonymous.is_file());
        let gone = maps.find(0x7fff_f7e0_0001).unwrap();
        assert!(gone.deleted && gone.shared);
        assert_eq!(gone.name.as_deref(), Some("/tmp/x\ny.so"));
        assert!(!maps.find(0x7fff_f7fc_9000).unwrap().is_file());
    }

    #[test]
    fn finds_nothing_between_and_around() {
        let maps = Maps::parse(TEXT);
        for address in [
            0,
            0x5555_5555_3fff,
            0x5555_5555_6000,
            0x7fff_f7d0_1000,
            u64::MAX,
        ] {
            assert!(maps.find(address).is_none(), "{address:#x}");
        }
        assert!(Maps::parse("").find(0).is_none());
    }

    #[test]
    fn a_file_loaded_twice_is_two_images() {
        let maps = Maps::parse(
            "1000-2000 r--p 00000000 fe:01 9 /a\n2000-3000 r-xp 00001000 fe:01 9 /a\n\
             5000-6000 r--p 00000000 fe:01 9 /a\n6000-7000 r-xp 00001000 fe:01 9 /a\n",
        );
        let starts = |address| {
            let of = maps.find(address).unwrap();
            maps.image(of)
                .iter()
                .map(|mapping| mapping.start)
                .collect::<Vec<_>>()
        };
        assert_eq!(starts(0x2000), [0x1000, 0x2000]);
        assert_eq!(starts(0x6000), [0x5000, 0x6000]);
    }
}

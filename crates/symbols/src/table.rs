//! Function symbols of one module, searched by address.

/// How many symbols before an address may be looked at for one that covers it.
const LOOK_BACK_SYMBOLS: usize = 16;

/// One symbol on its way into the table.
pub(crate) struct Symbol<'a> {
    pub name: &'a [u8],
    pub address: u64,
    pub size: u64,
    /// Declared a function, rather than a bare label of assembly code.
    pub function: bool,
    pub local: bool,
}

struct Entry {
    address: u64,
    size: u64,
    /// Which of several names for one address to show: the smallest.
    rank: (bool, bool, usize, bool, usize),
    name: Box<str>,
}

/// All function symbols of a module.
#[derive(Default)]
pub(crate) struct SymbolTable {
    entries: Vec<Entry>,
    /// Address ranges that hold code, ascending.
    code: Vec<(u64, u64)>,
}

impl SymbolTable {
    pub fn new(symbols: &[Symbol<'_>], mut code: Vec<(u64, u64)>) -> SymbolTable {
        code.sort_unstable();
        let mut table = SymbolTable {
            entries: Vec::new(),
            code,
        };
        for symbol in symbols {
            if symbol.name.is_empty() || table.range_of(symbol.address).is_none() {
                continue;
            }
            let underscores = symbol.name.iter().take_while(|&&byte| byte == b'_').count();
            table.entries.push(Entry {
                address: symbol.address,
                size: symbol.size,
                rank: (
                    symbol.size == 0,
                    !symbol.function,
                    underscores,
                    symbol.local,
                    symbol.name.len(),
                ),
                name: String::from_utf8_lossy(symbol.name).into(),
            });
        }
        table
            .entries
            .sort_by(|a, b| (a.address, a.rank, &a.name).cmp(&(b.address, b.rank, &b.name)));
        table.entries.dedup_by_key(|entry| entry.address);
        let mut covered_to = 0;
        table.entries.retain(|entry| {
            let label_inside = entry.size == 0 && entry.address < covered_to;
            covered_to = covered_to.max(entry.address.saturating_add(entry.size));
            !label_inside
        });
        table.entries.shrink_to_fit();
        table
    }

    /// The mangled name of the function that covers `address`, and where the function starts. A
    /// symbol without a size covers what follows it up to the next symbol.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let range = self.range_of(address)?;
        let behind = self
            .entries
            .partition_point(|entry| entry.address <= address);
        let before = &self.entries[behind.saturating_sub(LOOK_BACK_SYMBOLS)..behind];
        let covering = before
            .iter()
            .rev()
            .find(|entry| address - entry.address < entry.size);
        let unsized_last = || {
            before
                .last()
                .filter(|entry| entry.size == 0 && entry.address >= range.0)
        };
        let entry = covering.or_else(unsized_last)?;
        Some((&entry.name, entry.address))
    }

    fn range_of(&self, address: u64) -> Option<(u64, u64)> {
        let behind = self.code.partition_point(|range| range.0 <= address);
        let range = *self.code.get(behind.checked_sub(1)?)?;
        (address < range.1).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, address: u64, size: u64) -> Symbol<'_> {
        Symbol {
            name: name.as_bytes(),
            address,
            size,
            function: size != 0,
            local: false,
        }
    }

    #[test]
    fn the_covering_symbol_wins() {
        let symbols = [
            symbol("__write", 0x100, 0x20),
            symbol("write", 0x100, 0x20),
            symbol("label_inside", 0x110, 0),
            symbol("start", 0x200, 0),
            symbol("data", 0x900, 8),
        ];
        let table = SymbolTable::new(&symbols, vec![(0x200, 0x280), (0x100, 0x180)]);
        assert_eq!(table.find(0x100), Some(("write", 0x100)));
        assert_eq!(table.find(0x11f), Some(("write", 0x100)));
        // Between write's end and the end of its section nothing is known.
        assert_eq!(table.find(0x130), None);
        assert_eq!(table.find(0x27f), Some(("start", 0x200)));
        for address in [0, 0xff, 0x180, 0x280, 0x900, u64::MAX] {
            assert_eq!(table.find(address), None, "{address:#x}");
        }
    }
}

//! Inputs for the server test: sound requests, chosen border cases, and requests damaged at random from a seed.

/// SplitMix64: the same numbers for the same seed everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one_of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}

const NAMES: [&[u8]; 7] = [b"PING", b"ECHO", b"echo", b"pInG", b"nope", b"", b"Q\xffz"];
const BYTES: &[u8] = b"ab1*$ \t\r\n\0\x0b\x0c\"'\\x41n-+\xff";
const INLINE_BYTES: &[u8] = b"abnrtx41 \t\r\x0b\x0c\"'\\\xff";
const NUMBERS: [&str; 21] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "-1",
    "-0",
    "+1",
    "01",
    "",
    " 1",
    "1 ",
    "x",
    "10",
    "11",
    "-10",
    "2147483647",
    "2147483648",
    "536870912",
    "536870913",
    "9223372036854775808",
];

/// Up to four requests in a row, three in five of them damaged.
pub fn input(dice: &mut Dice) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..=dice.below(4) {
        match dice.below(10) {
            0..=4 => array(dice, &mut input),
            5..=7 => inline(dice, &mut input),
            8 => {
                let number = *dice.one_of(&NUMBERS.each_ref());
                input.extend(format!("{}{number}\r\n", dice.one_of(&["*", "$", "*1\r\n$", ":"])).bytes());
            }
            _ => input.extend(
                dice.one_of(&["\r\n", "\n", " \r\n", "*0\r\n", "*-1\r\n", "\x0b\t\n"])
                    .bytes(),
            ),
        }
    }
    if dice.below(5) < 3 {
        for _ in 0..=dice.below(3) {
            damage(dice, &mut input);
        }
    }
    input
}

fn text(dice: &mut Dice, alphabet: &[u8], most: usize) -> Vec<u8> {
    (0..dice.below(most + 1))
        .map(|_| alphabet[dice.below(alphabet.len())])
        .collect()
}

fn array(dice: &mut Dice, input: &mut Vec<u8>) {
    let count = 1 + dice.below(3);
    input.extend(format!("*{count}\r\n").bytes());
    for index in 0..count {
        let arg = if index == 0 {
            dice.one_of(&NAMES).to_vec()
        } else {
            text(dice, BYTES, 8)
        };
        input.extend(format!("${}\r\n", arg.len()).bytes());
        input.extend(arg);
        input.extend(b"\r\n");
    }
}

fn inline(dice: &mut Dice, input: &mut Vec<u8>) {
    input.extend(dice.one_of(&NAMES));
    for _ in 0..dice.below(3) {
        input.push(b' ');
        let quote = dice.one_of(&["", "", "\"", "'"]);
        input.extend(quote.bytes());
        input.extend(text(dice, INLINE_BYTES, 6));
        input.extend(quote.bytes());
    }
    input.extend(dice.one_of(&["\r\n", "\n", "\r\r\n"]).bytes());
}

fn damage(dice: &mut Dice, input: &mut Vec<u8>) {
    if input.is_empty() {
        return;
    }
    let at = dice.below(input.len());
    match dice.below(5) {
        0 => {
            input.remove(at);
        }
        1 => input.insert(at, BYTES[dice.below(BYTES.len())]),
        2 => input[at] = BYTES[dice.below(BYTES.len())],
        3 => {
            let piece = input[at..(at + 1 + dice.below(8)).min(input.len())].to_vec();
            input.splice(at..at, piece);
        }
        _ => input.truncate(at),
    }
}

/// Border cases, each with a sound request behind it, which must be answered or not as the scanner says.
pub fn chosen() -> Vec<Vec<u8>> {
    let lines: [&[u8]; 44] = [
        b"*1\rX$4\rYPINGZZ",
        b"*1\r\n$4\r\nPINGZZ",
        b"*1\r\n$4\rYPING\r\n",
        b"*1\r\n$4\r\nPI\r\nNG\r\n",
        b"*1\r\n$0\r\n\r\n",
        b"*0\rX",
        b"*-9223372036854775808\r\n",
        b"*-9223372036854775809\r\n",
        b"*1\n$4\nPING\n",
        b"*1\r\n$4\0\r\n",
        b"*1\0\r\n",
        b"*\0\r\n",
        b"*1\r\n\0\r\n",
        b"*1\r\n\n\r\n",
        b"*1\r\n\r\n",
        b"*1\r\n\xff\r\n",
        b"*1\r\0$4\r\0PING\0\0",
        b"PING\0\r\n",
        b"\0\r\n",
        b"ECHO \"a\0b\"\r\n",
        b"PING\r\r\n",
        b"\r\r\n",
        b"ECHO a\rb\n",
        b"ECHO a\x0bb\n",
        b"ECHO \"a\"b\n",
        b"ECHO \"a\"\x0bb\n",
        b"ECHO 'a'\x0c b\n",
        b"ECHO a\"b c\" \n",
        b"ECHO \"\\x41\\x4g\\xZZ\\n\\r\\t\\a\\b\\q\\\"\"\n",
        b"ECHO 'a\\'b\\n'\n",
        b"ECHO \"a\\\n",
        b"ECHO \"a\n",
        b"ECHO '' \n",
        b"\"\" a b\n",
        b"nope \"a b\" 'c' d\\x41\n",
        b"ECHO \x85 \xa0\n",
        b"ECHO \x85a\xa0\n",
        b"*10\r\n",
        b"*11\r\n",
        b"*2\r\n$4\r\nECHO\r\n:1\r\n",
        b"*1048577\r\n",
        b"*2147483647\r\n",
        b"*1\r\n$536870912\r\n",
        b"*1\r\n$16385\r\n",
    ];
    let mut inputs: Vec<Vec<u8>> = lines
        .iter()
        .map(|line| [line, &b"*1\r\n$4\r\nPING\r\n"[..]].concat())
        .collect();
    for length in [16_384, 16_385] {
        let value = vec![b'v'; length];
        inputs.push(
            [
                format!("*2\r\n$4\r\nECHO\r\n${length}\r\n").as_bytes(),
                &value,
                b"\r\nPING\r\n",
            ]
            .concat(),
        );
    }
    for count in [10, 11] {
        inputs.push(
            [
                format!("*{count}\r\n").as_bytes(),
                &b"$4\r\nnope\r\n".repeat(count),
                b"PING\r\n",
            ]
            .concat(),
        );
    }
    inputs.push([b"*2000\r\n".as_slice(), &b"$4\r\nnope\r\n".repeat(2000), b"PING\r\n"].concat());
    inputs.extend(lines_of_64_kilobytes(0));
    inputs.push([&b"ECHO "[..], &vec![b' '; 64 * 1024 - 6], b"x\nPING\n"].concat());
    inputs
}

/// What the server must end by itself: errors with and without words.
pub fn refused_by_all() -> Vec<Vec<u8>> {
    let mut inputs: Vec<Vec<u8>> = NUMBERS[5..]
        .iter()
        .filter(|number| {
            !matches!(
                **number,
                "-1" | "10" | "11" | "-10" | "2147483647" | "536870912" | "536870913"
            )
        })
        .map(|number| format!("*{number}\r\n").into_bytes())
        .collect();
    for input in [
        &b"*1\r\n$536870913\r\n"[..],
        b"*1\r\n$-1\r\n",
        b"*1\r\n$04\r\nPING\r\n",
        b"*1\r\nX\r\n",
        b"ECHO \"a\r\n",
        b"POST / HTTP/1.1\r\n",
        b"hOSt: x\r\n",
        b"*1\r\n$4\r\npost\r\n",
        b"*1\r\n$7\r\nHost:\0x\r\n",
        b"\"post\\x00x\"\n",
    ] {
        inputs.push(input.to_vec());
    }
    inputs.extend(lines_of_64_kilobytes(1));
    inputs
}

/// Lines without an end, so many bytes longer than the server waits for.
fn lines_of_64_kilobytes(longer: usize) -> Vec<Vec<u8>> {
    [
        (&b""[..], &b"*"[..]),
        (b"*1\r\n", b"$"),
        (b"*1\r\n", b"X"),
        (b"", b"PING "),
        (b"", b"PING\0\n"),
    ]
    .iter()
    .map(|(before, start)| [before, *start, &vec![b'1'; 64 * 1024 + longer - start.len()]].concat())
    .collect()
}

"""What RFC 8259 says is JSON, is none, or leaves to the reader: texts in the place of a value, and around a whole
event.
"""

VALUES = rb"""
    null true false {} [] [[[]]] {"":0} {"a":{"a":{"a":null}}} [null,[true,{}]] {"\u0061\n":1} {"a":1,"A":2} {"a.b":1,"a":2}
    0 -0 -1 123 0.5 -0.25 1.10 1e3 1E3 1e+3 12E-2 0e0 0E+1 1.5e-10 -1e-2 9007199254740993 9223372036854775807
    -9223372036854775808 9223372036854775808 12345678901234567890.123456789 99999999999999999999999999999999999999
    "" "a" "\"\\\/\b\f\n\r\t" "\u0041\u00e9\u20AC" "\ud83d\ude00" "\u0000" "\u001f\u007f" "\\u0000" "\uffff" "\u2028\ufeff" "'"
    "null" "1" "//" "/**/" "{}[]:,"
""".split()
VALUES += [b"[ ]", b"[\t1\r,2 ]", b' { "a b" : 1 } ', b"[\n1\n]", b'" "', b'"\x7f"', b"[" * 100 + b"]" * 100]
VALUES += [f'"{text}"'.encode() for text in ("é€😀", "\u2028\u2029\x85\xa0", "\ufeff", "\U0010ffff\uffff")] + [
    '{"é😀":1}'.encode()
]

NO_VALUES = rb"""
    [ ] [1 [1,] [,1] [1,,2] { {"a"} {"a":} {"a":1,} {,"a":1} {1:1} {a:1} {'a':1} {"a"::1} {"a";1} ["a":1] [1} {"a":1] [1]] {}} 1,
    nul NULL True truee undefined None nan /**/1 1//c #1 \n1
    +1 01 -01 .5 -.5 1. - --1 1e 1e+ 1.e3 1e1.5 0x1F 0b1 1_000 1a 1L 1f 0.1.2
    'a' `a` "a a" "a"b" "\x41" "\u12" "\u12G4" "\a" "\u" "\U0041" "\"
""".split()
NO_VALUES += [
    b"",
    b"1 2",
    b"[1 2]",
    b'{"a" 1}',
    b'{"a":1 "b":2}',
    b"- 1",
    b"1 000",
    b"\x0c1",
    b"1\x00",
    b'"\t"',
    b'"\x00"',
    b'"\x1f"',
]
NO_VALUES += [
    b'"\n"',
    b'"\\\n"',
    *(text.encode() for text in ("\xa01", "\ufeff1", "\u20281", "\uff11", "\u0663", "\u22121", "“a”")),
]

NO_UTF8 = [
    b'"\xff"',
    b'"\xe9"',
    b'"\x80"',
    b'"\xc0\xaf"',
    b'"\xe2\x82"',
    b'"\xed\xa0\x80"',
    b'"\xf4\x90\x80\x80"',
    b'{"\xfe":1}',
]

# What RFC 8259 leaves to the reader, or some write though it is no JSON → what it gives; None: it is rejected.
EITHER: dict[bytes, str | None] = {
    **dict.fromkeys(
        [
            b"1e400",
            b"-1e400",
            b"1.7976931348623159e308",
            b"1" * 400,
            b"NaN",
            b"Infinity",
            b"-Infinity",
            b"1e-400",
            b"9" * 39,
            b"0." + b"1" * 60,
        ]
    ),
    b"-0.0": "0",
    # Half a surrogate pair: a named limit (docs/types.md).
    rb'"\ud800"': "?",
    rb'"\udc00\ud83d"': "??",
    rb'{"\ud800":1}': '{"?":1}',
    rb'["\\\ud800 \ud83d\ude00"]': '["\\\\? 😀"]',
    b'{"a":1,"a":2}': None,
    b"[" * 900 + b"]" * 900: "[" * 900 + "]" * 900,
    b'{"a":' * 3000 + b"1" + b"}" * 3000: None,
}

# Around an event, which stands for %s.
EVENTS = [b" %s ", b"\t%s\r", b"\n%s\n"]
NO_EVENTS = [
    b"%s%s",
    b"%s,",
    b"%s]",
    b"%s}",
    b"%s x",
    b"%s\x00",
    b"%s/**/",
    b"%s 1",
    b"[%s]",
    b"[%s",
    b"{%s}",
    b",%s",
    b"x%s",
    b'"%s',
]
NO_EVENTS += [b"\x00%s", b")]}',\n%s", b"\xff\xfe%s", b'"event"', b"1", b"true", b"[]", b"{}", b"{", b'{"op":"c"']

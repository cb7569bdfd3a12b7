"""Addresses that must never get a token, and values that a client can send as its state."""

NOT_LOOPBACK = [
    "", " ", "127.0.0.1:9789", "//127.0.0.1:9789", "/turborepo/success", "https://127.0.0.1:9789",
    "https://localhost:9789", "ftp://127.0.0.1:9789", "javascript:alert(1)",
    "javascript://127.0.0.1:9789/%0aalert(1)", "data:text/html,<script>alert(1)</script>", "file:///etc/passwd",
    "vscode://127.0.0.1:9789", "HTTP://127.0.0.1:9789", "http:127.0.0.1:9789", "http:/127.0.0.1:9789",
    "http:///127.0.0.1:9789", "http:\\\\127.0.0.1:9789", "http://127.0.0.1", "http://127.0.0.1:",
    "http://127.0.0.1:0", "http://127.0.0.1:65536", "http://127.0.0.1:99999", "http://127.0.0.1:09789",
    "http://127.0.0.1:+9789", "http://127.0.0.1:9789 ", " http://127.0.0.1:9789", "http://127.0.0.1:9789\n",
    "http://127.0.0.1:9789\r\nSet-Cookie: a=b", "http://127.0.0.1:97\t89", "http://127.0.0.1:9789\x00",
    "http://127.0.0.1:\uff19789", "http://127.0.0.1:\u06619789", "http://evil.example", "http://evil.example:9789",
    "http://evil.example/127.0.0.1:9789", "http://evil.example?127.0.0.1:9789",
    "http://evil.example#127.0.0.1:9789", "http://127.0.0.1@evil.example", "http://127.0.0.1:9789@evil.example",
    "http://127.0.0.1:9789@evil.example:80", "http://user@127.0.0.1:9789", "http://user:password@127.0.0.1:9789",
    "http://@127.0.0.1:9789", "http://evil.example\\@127.0.0.1:9789", "http://127.0.0.1:9789\\@evil.example",
    "http://127.0.0.1:9789\\.evil.example", "http://127.0.0.1.evil.example:9789",
    "http://localhost.evil.example:9789", "http://localhost.:9789", "http://localhost%2eevil.example:9789",
    "http://evil.example%2f@localhost:9789", "http://LOCALHOST:9789", "http://loc\u00adalhost:9789",
    "http://\u24dbocalhost:9789", "http://127.0.0.1\u3002evil.example:9789", "http://127\u30020\u30020\u30021:9789",
    "http://127.1:9789", "http://127.0.0.2:9789", "http://127.0.0.1.:9789", "http://127.000.000.001:9789",
    "http://0x7f.0.0.1:9789", "http://0177.0.0.1:9789", "http://2130706433:9789", "http://0.0.0.0:9789",
    "http://0:9789", "http://10.0.0.1:9789", "http://192.168.1.1:9789", "http://169.254.169.254:80",
    "http://::1:9789", "http://[::]:9789", "http://[::1]", "http://[::1%25eth0]:9789",
    "http://[0:0:0:0:0:0:0:1]:9789", "http://[::ffff:127.0.0.1]:9789", "http://[::1]evil.example:9789",
    "http://[::1]:9789@evil.example", "http://127.0.0.1:9789/callback", "http://127.0.0.1:9789//evil.example",
    "http://127.0.0.1:9789/../", "http://127.0.0.1:9789/%2e%2e/", "http://127.0.0.1:9789/;@evil.example",
    "http://127.0.0.1:9789?next=http://evil.example", "http://127.0.0.1:9789/?token=mine", "http://127.0.0.1:9789#",
    "http://127.0.0.1:9789/#fragment", "http://127.0.0.1:9789,http://evil.example",
    "http://127.0.0.1:9789" + "/" * 5000, "http://127.0.0.1:" + "9" * 5000,
]  # fmt: skip

STATES = [
    "", "JlWTpaNIJSVbBSyMpDVuzWvdNaWoUjqg", "a b+c", "a&token=mine", "a#b", "a?b=c", "a%20b%00", "a=b;c,d",
    "\"'<script>alert(1)</script>", "\r\nLocation: http://evil.example", "\x00\x07\x1b", "\u2028\u202e",
    "\u00e4\u00f6\u00fc \u65e5\u672c \U0001f469\u200d\U0001f4bb", "x" * 512, "\U0001f469" * 512,
]  # fmt: skip

"""What `larder doctor` can find."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

PREFLIGHT_LINE = '"remoteCache": { "preflight": true }'
"""The line of turbo.json with which artifacts of every size are cached."""

MAX_BODY_BYTES = 4_500_000
"""The largest upload through a function."""


class Level(StrEnum):
    PROBLEM = "problem"
    """turbo stores or restores nothing, or not the artifacts that the finding names."""
    WARNING = "warning"
    """The cache works, but slower, less safely or not as the files say."""
    NOTE = "note"
    """Good to know."""


@dataclass(frozen=True, slots=True)
class Rule:
    level: Level
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A breach of a rule. `where` is a file with a line, a variable, or the address of the deployment.

    `worst` is the level that its evidence allows: a problem that is not known to lose hits now is a warning or a note.
    """

    id: str
    where: str
    found: str
    paste: str = ""
    worst: Level = Level.PROBLEM

    @property
    def level(self) -> Level:
        return max(RULES[self.id].level, self.worst, key=list(Level).index)

    @property
    def place(self) -> tuple[int, int]:
        """Sorts by what keeps the next build from a hit."""
        return list(Level).index(self.level), list(RULES).index(self.id)

    @property
    def rule(self) -> str:
        return RULES[self.id].text


_P, _W, _N = Level.PROBLEM, Level.WARNING, Level.NOTE

RULES: Mapping[str, Rule] = MappingProxyType(
    # In the order in which doctor shows findings of a level.
    {
        # Nothing comes from the cache: what turbo cannot read, reach or use.
        "invalid-value": Rule(_P, "turbo stops at a value that it cannot read."),
        "no-address": Rule(
            _P, "turbo needs the address of your cache. Without one, it uses Vercel's."
        ),
        "invalid-address": Rule(
            _P, "Write https:// and a host as the address, without a user or password."
        ),
        "plain-http": Rule(
            _P,
            "Use https: a deployment answers nothing else. With http, everyone on the way can read the token. Doctor "
            "does not send it.",
        ),
        "not-larder": Rule(_P, "Set the address of Larder, without a path."),
        "unreachable": Rule(_P, "turbo must reach the address. Check it, and the network between."),
        "proxied-address": Rule(
            _P, "The proxy does not reach this computer. Name it in NO_PROXY, as larder run does."
        ),
        "sidecar": Rule(
            _P,
            "turbo asks larder run or larder proxy, which has met this. Run larder doctor without it to see the cause.",
        ),
        "empty-variable": Rule(
            _P, "An empty variable hides the value of the files. Unset it, or set it."
        ),
        "no-token": Rule(_P, "Without a token, turbo sends no request to the remote cache."),
        "invalid-token": Rule(
            _P,
            "Set the token as one word, without quotes, spaces or line breaks. One that begins with vca_ is Vercel's.",
        ),
        "token-refused": Rule(
            _P,
            "The token is mistyped, expired, revoked, disabled or used up. Run turbo login, or set a new key.",
        ),
        "no-team": Rule(_P, "Without a team, turbo sends no request to the remote cache."),
        "invalid-team-id": Rule(
            _P, "turbo sends a team id only if it begins with team_. Put a slug into TURBO_TEAM."
        ),
        "invalid-team": Rule(
            _P, "A slug is 1 to 48 letters, digits and hyphens between them, as in the console."
        ),
        "teams-differ": Rule(
            _P, "Two settings name two teams. turbo sends both, and Larder refuses the request."
        ),
        "other-team": Rule(
            _P,
            "The token is for another team than the one that turbo names. Correct the team, or use its key.",
        ),
        "caching-off": Rule(
            _P, "turbo uses the remote cache only if remoteCache.enabled is not false."
        ),
        "cache-flags": Rule(
            _P, "A variable limits what turbo reads from or writes to the remote cache."
        ),
        "blocked": Rule(_P, "The operator has blocked the team. Ask the operator for the reason."),
        "team-off": Rule(_P, "Caching of the team is off. An owner of the team can enable it."),
        "rate-limited": Rule(
            _P,
            "The key has no uses left for now, or the API is throttled. Wait, or use a key without a limit.",
        ),
        "unexpected": Rule(
            _P,
            "This is not one of Larder's usual replies. Try again, and look for a proxy in front of it.",
        ),
        "signature-without-key": Rule(
            _P,
            "With signature: true, turbo stores and restores nothing without TURBO_REMOTE_CACHE_SIGNATURE_KEY.",
        ),
        "signature-with-preflight": Rule(
            _P,
            "This deployment has no edge. S3 then drops the signature of a direct upload, so turbo never accepts it. "
            "Ask its operator for the edge, or turn preflight off: signed artifacts up to 4.5 MB then work.",
        ),
        # Something is not stored.
        "unsigned-refused": Rule(
            _P,
            "This deployment offers no direct upload. The team refuses unsigned artifacts, or a proxy answers OPTIONS.",
        ),
        "quota-full": Rule(
            _P,
            "The quota is full, so uploads are refused. Delete artifacts, or ask the operator for a larger quota.",
        ),
        "preflight-off": Rule(
            _P,
            "Without preflight, Larder refuses artifacts over 4.5 MB (413), and turbo builds them again each time. "
            "It is fine if you always pass --preflight, or if no artifact is that large.",
        ),
        "old-turbo": Rule(
            _P, "Direct uploads need turbo 2.10.13 or newer. Older ones store nothing over 4.5 MB."
        ),
        "signature-without-preflight": Rule(
            _W, "Signed artifacts over 4.5 MB need preflight, and a deployment with the edge."
        ),
        "read-only": Rule(
            _P,
            "The token can read, but not upload. It needs artifacts: write, and its user a confirmed address and "
            "another role than VIEWER.",
        ),
        "own-cache": Rule(
            _W,
            "Uploads go to a team. These go to the cache of the token's user, which no one else reads.",
        ),
        "own-scope": Rule(
            _N,
            "The team is protected, and this token is not trusted. Only this credential reads what it uploads. "
            "It reads what trusted jobs upload.",
        ),
        "short-upload-timeout": Rule(
            _W,
            "Allow a second for every 2 MB of the largest artifact. An upload that takes longer is lost.",
        ),
        "short-download-timeout": Rule(
            _W,
            "Allow a second for every 4 MB of the largest artifact. A download that takes longer is a miss.",
        ),
        # The cache works.
        "token-not-sent": Rule(
            _W,
            "Only the repository names this address, so doctor does not send your token there. "
            "If it is your cache, name it with --api or TURBO_API.",
        ),
        "token-expires": Rule(
            _W, "The token expires within a week. Run turbo login again in time, or rotate the key."
        ),
        "personal-key": Rule(
            _W,
            "CI stops when its user leaves the team or is deleted. Use a key that the team owns, or tokens of CI jobs.",
        ),
        "wrong-clock": Rule(
            _W,
            "Set the clock of this computer. If it is wrong by more than five minutes, certificates can fail.",
        ),
        "slash-at-end": Rule(
            _W,
            "Write the address without a slash at the end. turbo adds /v8 to it, and some proxies refuse //v8.",
        ),
        "hidden-setting": Rule(
            _W,
            "turbo uses one value, and ignores the others: variables, then .turbo/config.json, then turbo.json.",
        ),
        "package-settings": Rule(
            _W, "Only turbo.json at the root sets remoteCache. turbo ignores it in packages."
        ),
        "key-without-signature": Rule(
            _W, "turbo signs only if remoteCache.signature is true. The key alone has no effect."
        ),
        "weak-signature-key": Rule(_W, "Sign with a key of 32 bytes or more."),
        "login-refused": Rule(_W, "turbo login accepts only https, or http on this computer."),
        "login-address": Rule(
            _N, "turbo login needs loginUrl or --login. Without it, the login goes to Vercel."
        ),
        "preflight-needless": Rule(
            _N,
            "Only artifacts over 4.5 MB need preflight. It adds a request to each download and upload, and up to "
            "three quarters to the time of a restore.",
        ),
        "summaries-off": Rule(
            _N,
            "With TURBO_RUN_SUMMARY=true, or 1, turbo writes what it hashed to .turbo/runs. larder why --last and "
            "reports of runs need these files.",
        ),
        "untested-turbo": Rule(_N, "Larder is tested with turbo 1.13.4 to 2.11.11."),
        "unknown-turbo": Rule(
            _N,
            "Doctor reads the version from node_modules, the lock file or package.json, or asks turbo on PATH.",
        ),
    }
)

const REDACTED = '[redacted]'
const CUT = '…[cut]'
const MAX_TEXT = 4096
/** Longer texts are not looked at beyond this. */
const MAX_SCANNED = 64 * 1024

const WORDS = 'pass(?:word|wd|phrase)|secret|token|(?:api|access)[_-]?key'

/**
 * What a secret looks like wherever it stands, and what is left of it. Repetitions that could be tried from many
 * places are bounded, so that no text takes more than linear time worth mentioning. What each begins with is said once
 * more, for nearly no text has any of it: one look at a text replaces thirteen.
 */
const SECRETS: readonly (readonly [string, RegExp, string])[] = [
  [
    '-----BEGIN',
    /-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY-----[^]*?(?:-----END [A-Z0-9 ]{0,32}PRIVATE KEY-----|$)/g,
    REDACTED,
  ],
  ['al_', /al_([0-9a-z]{1,32})_[0-9A-Za-z]{12,}/g, `al_$1_${REDACTED}`],
  ['alt_', /alt_[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{16,}/g, 'alt_[redacted]'],
  ['eyJ', /eyJ[A-Za-z0-9_-]{8,1024}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*/g, REDACTED],
  ['github_pat_', /github_pat_[A-Za-z0-9_]{16,}/g, REDACTED],
  ['gh[pousr]_', /gh[pousr]_[A-Za-z0-9]{16,}/g, REDACTED],
  ['A[KS]IA', /(?:AKIA|ASIA)[A-Z0-9]{16}/g, REDACTED],
  ['sk-', /(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}/g, REDACTED],
  ['xox', /xox[abeoprs]-[A-Za-z0-9-]{10,}/g, REDACTED],
  ['://', /(:\/\/)[^\s/?#]{1,1024}@/g, `$1${REDACTED}@`],
  [
    'authorization',
    /(authorization["']?\s{0,8}[:=]\s{0,8}["']?)(?:[a-z]{1,32}\s{1,8})?[^\s"',;]{1,8192}/gi,
    `$1${REDACTED}`,
  ],
  ['bearer', /(bearer\s{1,8})[^\s"',;]{6,8192}/gi, `$1${REDACTED}`],
  [
    WORDS,
    /((?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key)["']?=["']?)[^\s"'&;,]{1,8192}/gi,
    `$1${REDACTED}`,
  ],
  [
    WORDS,
    /("[a-z_-]{0,64}(?:password|passwd|passphrase|secret|token|api[_-]?key)"\s{0,8}:\s{0,8}")(?:[^"\\]|\\.){1,8192}/gi,
    `$1${REDACTED}`,
  ],
]

const BEGINNINGS = new RegExp(SECRETS.map(([beginning]) => beginning).join('|'), 'i')

/** The text without anything that looks like a secret, at most 4 KiB of it. */
export function redactText(text: string): string {
  let clean = scrub(text.length > MAX_SCANNED ? text.slice(0, MAX_SCANNED) : text)
  // Where much was redacted, the end of what was scanned may be the half of a secret.
  if (text.length > MAX_SCANNED && clean.length <= MAX_TEXT) clean = `${clean.replace(/\S+$/, '')}${CUT}`
  return clean.length > MAX_TEXT ? `${wholeCharacters(clean.slice(0, MAX_TEXT - CUT.length))}${CUT}` : clean
}

/** All of the text, however long, without anything that looks like a secret. */
export function scrub(text: string): string {
  let clean = text
  if (BEGINNINGS.test(clean))
    for (const [, pattern, replacement] of SECRETS) clean = clean.replaceAll(pattern, replacement)
  return clean
}

/** A cut between the halves of a surrogate pair would leave half a character. */
function wholeCharacters(text: string): string {
  return text.toWellFormed() === text ? text : text.slice(0, -1)
}

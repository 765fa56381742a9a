import { setImmediate as nextTurn } from 'node:timers/promises'

/** What a secret looks like; bounded, so that no text takes more than linear time. */
const SECRETS: readonly (readonly [string, RegExp])[] = [
  ['private key', /-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY-----/],
  ['GitHub token', /gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}/],
  ['GitLab token', /gl(?:pat|rt|dt|ptt)-[A-Za-z0-9_-]{20,64}/],
  ['AWS key', /(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])/],
  ['AWS secret', /aws_?secret_?access_?key["'\s:=]{1,8}[A-Za-z0-9/+=]{40}/i],
  ['Google key', /AIza[A-Za-z0-9_-]{35}/],
  ['Slack token', /xox[abeoprs]-[A-Za-z0-9-]{10,255}/],
  ['Stripe key', /(?:sk|rk)_live_[A-Za-z0-9]{16,255}/],
  ['key of a model provider', /(?<![A-Za-z0-9])sk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,255}/],
  ['npm token', /npm_[A-Za-z0-9]{36}/],
  ['PyPI token', /pypi-[A-Za-z0-9_-]{50,255}/],
  ['Airlock key', /(?<![A-Za-z0-9])al_[0-9a-z]{1,32}_[0-9A-Za-z]{20,128}/],
  ['signed token', /eyJ[A-Za-z0-9_-]{16,1024}\.eyJ[A-Za-z0-9_-]{16,2048}\.[A-Za-z0-9_-]{16,1024}/],
  ['password in a URL', /:\/\/[^\s/:@"'<>]{1,128}:[^\s/:@"'<>{}$]{3,256}@/],
  ['password of netrc', /machine\s{1,8}\S{1,255}\s{1,8}login\s{1,8}\S{1,255}\s{1,8}password\s{1,8}\S{3,255}/],
]

/** Base64 that is long enough to hold a secret. */
const ENCODED = /[A-Za-z0-9+/_-]{24,65536}={0,2}/g
/** A text is searched in windows, with a turn for others between them; no secret is longer than what two of them share. */
const WINDOW = 256 * 1024
const SHARED = 8 * 1024

export interface FoundSecret {
  readonly what: string
  /** Where the first of its kind is, or the window that holds it. */
  readonly at: number
}

/** Which secrets a content seems to hold, as they stand or in base64. */
export async function findSecrets(content: Buffer): Promise<readonly FoundSecret[]> {
  const found = new Map<string, number>()
  for (let from = 0; from < content.length; from += WINDOW - SHARED) {
    if (from > 0) await nextTurn()
    const text = content.toString('latin1', from, from + WINDOW)
    for (const { what, at } of [...inPlain(text), ...inEncoded(text)]) if (!found.has(what)) found.set(what, from + at)
  }
  return [...found].map(([what, at]) => ({ what, at }))
}

function inPlain(text: string): readonly FoundSecret[] {
  return SECRETS.flatMap(([what, pattern]) => {
    const at = text.search(pattern)
    return at < 0 ? [] : [{ what, at }]
  })
}

/** Also where lines were folded, as the program base64 does. */
function inEncoded(text: string): readonly FoundSecret[] {
  const joined = text.replaceAll(/\r?\n/g, '')
  const words = [...text.matchAll(ENCODED), ...(joined === text ? [] : joined.matchAll(ENCODED))]
  return words.flatMap(({ 0: word, index, input }) => {
    const what = decodedSecret(word)
    return what === undefined ? [] : [{ what: `${what}, in base64`, at: input === text ? index : 0 }]
  })
}

/** At every offset of four, for what was encoded may begin in the middle of a word. */
function decodedSecret(word: string): string | undefined {
  for (let skip = 0; skip < 4; skip++) {
    const inner = Buffer.from(word.slice(skip), 'base64').toString('latin1')
    const known = SECRETS.find(([, pattern]) => pattern.test(inner))
    if (known) return known[0]
  }
  return undefined
}

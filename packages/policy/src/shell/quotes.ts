const SIMPLE: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  e: '\x1b',
  E: '\x1b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

const ESCAPE = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|0?([0-7]{1,3})|c([^])|([^]))/gu

/** What `$'…'`, `echo -e` and `printf` make of backslashes. */
export function decodeAnsi(raw: string): string {
  if (!raw.includes('\\')) return raw
  return raw.replaceAll(
    ESCAPE,
    (whole: string, ...groups: (string | undefined)[]) => decodeNumber(groups) ?? decodeLetter(whole, groups),
  )
}

function decodeNumber([hex, short, long, octal]: readonly (string | undefined)[]): string | undefined {
  const digits = hex ?? short ?? long
  if (digits !== undefined) return fromCode(Number.parseInt(digits, 16))
  return octal === undefined ? undefined : fromCode(Number.parseInt(octal, 8) % 256)
}

function decodeLetter(whole: string, groups: readonly (string | undefined)[]): string {
  const [control, letter] = groups.slice(4)
  if (control !== undefined) return String.fromCodePoint(control.charCodeAt(0) % 32)
  if (letter === undefined) return whole
  if (Object.hasOwn(SIMPLE, letter)) return SIMPLE[letter] ?? letter
  return '\\\'"?'.includes(letter) ? letter : whole
}

/** Beyond what Unicode has, nothing; and never what we use for the unknown. */
function fromCode(code: number): string {
  return code > 0x10_ff_ff || code === 0xff_ff ? '' : String.fromCodePoint(code)
}

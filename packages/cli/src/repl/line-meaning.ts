import type { Runtime } from '@airlock/sdk'

/** What a line typed at the prompt means to the prompt itself. */
export type LineMeaning =
  | { readonly kind: 'leave'; readonly exitCode: number }
  /** For the shell of the sandbox. */
  | { readonly kind: 'shell'; readonly line: string }

const LEAVE: Readonly<Record<Runtime, RegExp>> = {
  python: /^(?:exit|quit)(?:\s*\(\s*(?<code>\d{0,3})\s*\))?$/,
  node: /^(?:\.exit|(?:exit|quit)(?:\(\))?|process\.exit\(\s*(?<code>\d{0,3})\s*\));?$/,
  bash: /^(?:exit|logout)(?:\s+(?<code>\d{1,3}))?$/,
}

/** Undefined for code, which the interpreter reads. */
export function meaningOf(runtime: Runtime, code: string): LineMeaning | undefined {
  const text = code.trim()
  const leave = LEAVE[runtime].exec(text)
  // An exit status has eight bits.
  if (leave) return { kind: 'leave', exitCode: Number(leave.groups?.['code'] ?? 0) & 0xff }
  const line =
    runtime === 'bash' || text.includes('\n') ? '' : (/^!\s*(?<line>\S.*)$/.exec(text)?.groups?.['line'] ?? '')
  return line === '' ? undefined : { kind: 'shell', line }
}

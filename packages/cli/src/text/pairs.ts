import { InvalidArgumentError } from 'commander'

/** `--env K=V`, any number of times. */
export function collectPairs(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (key === undefined || value === undefined) throw new InvalidArgumentError('Use KEY=VALUE.')
  return { ...before, [key]: value }
}

/** `--with PATH`, any number of times. */
export function collectWords(word: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), word]
}

import { InvalidArgumentError } from 'commander'

/** `--env K=V`, any number of times. */
export function collectPairs(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (key === undefined || value === undefined) throw new InvalidArgumentError('Use KEY=VALUE.')
  return { ...before, [key]: value }
}

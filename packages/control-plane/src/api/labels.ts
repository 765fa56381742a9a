import { AirlockError } from '@airlock/contract'

/** `a=b,c=d`. Fails closed: a part without `=` would otherwise match everything. */
export function parseLabels(text: string | undefined): Readonly<Record<string, string>> {
  if (text === undefined) return {}
  return Object.fromEntries(
    text.split(',').map((part) => {
      const [, key, value] = /^([^=]+)=(.*)$/.exec(part) ?? []
      if (key === undefined || value === undefined)
        throw new AirlockError('invalid_request', 'label: must be key=value, several separated by commas')
      return [key, value] as const
    }),
  )
}

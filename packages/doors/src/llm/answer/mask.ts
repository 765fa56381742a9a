const MAX_MESSAGE = 500
/** Keys of providers, tokens, and whatever is as long and as mixed as one. The process that holds keys knows their values. */
const SECRETS = /\b(?:sk|pk|rk|key|token)[-_][\w-]{6,}|\bbearer\s+\S+|[\w+/=-]{32,}/gi
const ADDRESSES = /\bhttps?:\/\/\S+|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/gi
const ACCOUNTS = /\b(?:org|proj|acct|wrkspc|user|req)[-_]\w+/gi

/** A provider's message in one line, without what looks like a secret, an account or an address. */
export function mask(message: string): string {
  const line = message
    .slice(0, 4 * MAX_MESSAGE)
    .replaceAll(/[\s\p{C}]+/gu, ' ')
    .trim()
  const masked = line.replaceAll(SECRETS, '…').replaceAll(ADDRESSES, '…').replaceAll(ACCOUNTS, '…')
  return masked.length > MAX_MESSAGE ? `${masked.slice(0, MAX_MESSAGE)}…` : masked
}

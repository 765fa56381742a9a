/** Stands for text that cannot be known before it runs. Not a character that anybody writes. */
export const UNKNOWN = '\uFFFF'

/** The same, outside of quotes: it may be several words, or none. */
export const UNKNOWN_WORDS = '\uFFFE'

/** As rules and people see it. */
export function showUnknown(text: string): string {
  return text.replaceAll(UNKNOWN_WORDS, '$@').replaceAll(UNKNOWN, '$')
}

/** Where user code is at home, and where relative paths begin. */
export const HOME = '/home/user'
export const WORKSPACE = '/workspace'

/** One spelling for one place: absolute, without `.`, `..` and empty names. Of an unknown place at least its end is kept. */
export function normalisePath(path: string, cwd: string): string {
  const isAnchored = path.startsWith('/') || path.startsWith(UNKNOWN) || path.startsWith(UNKNOWN_WORDS)
  const whole = isAnchored ? path : (expandTilde(path) ?? `${cwd}/${path}`)
  if (!whole.startsWith('/')) return whole
  if (!/\/(?:\/|\.|$)/u.test(whole)) return whole
  const names: string[] = []
  for (const name of whole.split('/')) {
    if (name === '..') names.pop()
    else if (name !== '' && name !== '.') names.push(name)
  }
  return `/${names.join('/')}`
}

/** `~`, `~/x`, `~root/x`; undefined for everything else. */
export function expandTilde(path: string): string | undefined {
  if (!path.startsWith('~')) return undefined
  const slash = path.indexOf('/')
  const user = slash < 0 ? path.slice(1) : path.slice(1, slash)
  const rest = slash < 0 ? '' : path.slice(slash)
  if (user === '') return HOME + rest
  if (user === 'root') return `/root${rest}`
  return /^[a-z_][a-z0-9_-]*$/u.test(user) ? `/home/${user}${rest}` : undefined
}

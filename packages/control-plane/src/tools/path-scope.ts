/** Whether a path is one that a scope names. `*` stands for anything within one part, never for a part more or less. */
export function isInScope(path: string, scope: readonly string[]): boolean {
  const parts = path.split('/')
  return scope.some((pattern) => {
    const patterns = pattern.split('/')
    return patterns.length === parts.length && patterns.every((one, at) => isLike(parts[at] ?? '', one))
  })
}

/** In time linear in both: each star takes the earliest place of the text that follows it. */
function isLike(part: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return part === pattern
  const last = rest.pop() ?? ''
  if (!part.startsWith(first) || part.length < first.length + last.length || !part.endsWith(last)) return false
  let at = first.length
  for (const piece of rest) {
    const found = part.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return at <= part.length - last.length
}

/** Whether JSON has no more levels. A key that schemas would drop counts as too deep: what is judged is what was asked. */
export function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.entries(value).every(([key, item]) => key !== '__proto__' && isShallow(item, levels - 1))
}

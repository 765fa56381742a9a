/** The eighths of a character cell, from the left. */
const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const

/** A bar that is this share of its width long; what is there at all is seen. */
export function bar(share: number, width: number): string {
  const eighths = share > 0 ? Math.max(1, Math.round(Math.min(1, share) * width * 8)) : 0
  return '█'.repeat(Math.floor(eighths / 8)) + (PARTS[eighths % 8] ?? '')
}

const MIB = 1024 * 1024

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return '–'
  if (count >= 1024 * MIB) return `${trim(count / 1024 / MIB)} GiB`
  if (count >= MIB) return `${trim(count / MIB)} MiB`
  return count >= 1024 ? `${trim(count / 1024)} KiB` : `${count} B`
}

export function percent(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : `${value < 10 ? value.toFixed(1) : Math.round(value)} %`
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 60) return `${trim(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

export function clockTime(iso: string): string {
  return new Date(iso).toLocaleTimeString(undefined, { hour12: false })
}

export function dateTime(iso: string | null): string {
  if (iso === null) return '–'
  const date = new Date(iso)
  return `${date.toLocaleDateString(undefined, { day: 'numeric', month: 'short' })}, ${clockTime(iso)}`
}

/** How long ago, or until then, in one unit. */
export function away(iso: string, now: number): string {
  const ms = Date.parse(iso) - now
  const span = coarse(Math.abs(ms))
  return ms > 0 ? `in ${span}` : `${span} ago`
}

function coarse(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} d`
}

function trim(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Math.round(value * 10) / 10)
}

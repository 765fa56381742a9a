const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }

/** HTML as text to read: tables in columns, blocks on lines of their own, nothing else of it. */
export function htmlToText(html: string): string {
  const bare = html.replaceAll(/<(script|style)\b[^]*?<\/\1\s*>/gi, '').replaceAll(/<!--[^]*?-->/g, '')
  const parts = bare.split(/(<table\b[^]*?<\/table\s*>)/i)
  return parts
    .map((part) => (/^<table\b/i.test(part) ? tableText(part) : blockText(part)))
    .filter((text) => text !== '')
    .join('\n')
}

function tableText(table: string): string {
  const rows = [...table.matchAll(/<tr\b[^]*?(?=<tr\b|<\/table\s*>)/gi)].map(([row]) =>
    [...row.matchAll(/<t[hd]\b[^>]*>([^]*?)(?=<\/t[hd]\s*>|<t[hd]\b|$)/gi)].map((cell) => lineText(cell[1] ?? '')),
  )
  const columns = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  return rows.map((row) => row.map((cell, i) => cell.padStart(widths[i] ?? 0)).join('  ')).join('\n')
}

function blockText(html: string): string {
  const lines = html.replaceAll(/<(?:br|\/p|\/div|\/h[1-6]|\/li|\/ul|\/ol|\/pre)\b[^>]*>/gi, '\n').split('\n')
  return lines
    .map(lineText)
    .filter((line) => line !== '')
    .join('\n')
}

function lineText(html: string): string {
  return html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, decodeEntity)
    .replaceAll(/\s+/g, ' ')
    .trim()
}

function decodeEntity(entity: string, ...groups: readonly (string | undefined)[]): string {
  const [decimal, hex, name] = groups
  if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? entity
  const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
  return code <= 0x10_ffff ? String.fromCodePoint(code) : entity
}

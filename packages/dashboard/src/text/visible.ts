/**
 * Characters that steer what is shown instead of being shown: controls, bidirectional overrides, invisible ones. Names and output
 * come from sandboxes, so each is replaced by a sign for it.
 */
const STEERING =
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu

export function visible(text: string): string {
  return text.replaceAll(STEERING, (character) => {
    const code = character.codePointAt(0) ?? 0
    return code === 0x1b ? '‹ESC›' : `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`
  })
}

/** In one line: line breaks and tabs are signs too. */
export function visibleLine(text: string): string {
  return visible(text).replaceAll('\n', '↵').replaceAll('\t', '→')
}

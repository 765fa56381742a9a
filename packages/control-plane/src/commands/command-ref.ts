export interface CommandRef {
  readonly sandbox: string
  readonly command: string
}

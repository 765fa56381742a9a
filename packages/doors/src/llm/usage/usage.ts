/** What a call used, as the provider counted. A token is in one of them only. */
export interface Usage {
  /** Read as they came, neither from a cache nor into one. */
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  /** Written into a cache that lasts longer and costs more. */
  readonly cacheWriteLong: number
  /** Reasoning included. */
  readonly output: number
}

/** Why the database refused: another holds the lock, the key exists, no space is left, or something else. */
export type StoreFault = 'busy' | 'taken' | 'full' | 'other'

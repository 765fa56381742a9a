/**
 * Why the database refused. `busy`: another holds the lock, or the connection broke, so the same may work in a moment.
 * `taken`: the key exists. `missing`: a row that it needs does not. `full`: no space is left. `closed`: it cannot be reached, or does not let us in.
 */
export type StoreFault = 'busy' | 'taken' | 'missing' | 'full' | 'closed' | 'other'

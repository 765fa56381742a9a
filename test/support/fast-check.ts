import { configureGlobal } from 'fast-check'
import { hash, testSeed } from './seed.ts'

// Property tests draw the same examples in every run with the same seed.
configureGlobal({ seed: hash(testSeed()) })

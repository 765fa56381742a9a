import { writeFileSync } from 'node:fs'
import { readOutcomes } from '../test/security/attacks/outcomes.ts'
import { renderPage } from '../test/security/attacks/page.ts'

/** `docs/attacks.md`, from what the last run of the attacks saw. */
writeFileSync(new URL('../docs/attacks.md', import.meta.url), renderPage(readOutcomes()))
